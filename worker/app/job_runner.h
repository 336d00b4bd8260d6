// One attempt at one job, from the claim to its end: parse, decode the pictures, generate, publish, finish. Lives on the
// engine thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/queue/job_queue.h"
#include "worker/app/drain.h"
#include "worker/app/lease_keeper.h"
#include "worker/app/progress_estimate.h"
#include "worker/app/stream_writer.h"
#include "worker/app/worker_metrics.h"
#include "worker/engine.h"

namespace merope::worker {

enum class JobOutcome : std::uint8_t {
  kSucceeded,
  kFailed,
  kCancelled,
  kReleased,    // given back: the worker drains
  kNotForUs,    // given back: another worker's model, or a newer release's spec
  kLost,        // another attempt's now, or not to be ended by us: nothing more was written
  kDeviceLost,  // as kLost; the engine said kUnavailable: this process can not go on, its lease runs out
};
std::string_view to_string(JobOutcome outcome);

class JobRunner {
 public:
  struct Options {
    std::string worker;
    int frames_per_fragment = 8;
    int encoder_threads = 1;
    RetryDelays retry = {};
  };

  JobRunner(GenerationEngine& engine,
            queue::JobConsumer& consumer,
            LeaseKeeper& keeper,
            const Drain& drain,
            const Clock& clock,
            WorkerMetrics& metrics,
            Options options);

  JobOutcome run(queue::ClaimedJob job);

 private:
  class Attempt;

  GenerationEngine& engine_;
  queue::JobConsumer& consumer_;
  LeaseKeeper& keeper_;
  const Drain& drain_;
  const Clock& clock_;
  WorkerMetrics& metrics_;
  const Options options_;
  ProgressEstimate estimate_;
};

}  // namespace merope::worker
