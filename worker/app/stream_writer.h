// Writes the entries of one attempt's event stream, each exactly once, through an absent queue up to the end of the lease.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "core/queue/job_queue.h"
#include "worker/app/job_lease.h"
#include "worker/app/worker_metrics.h"

namespace merope::worker {

struct RetryDelays {
  std::chrono::milliseconds first{100};
  std::chrono::milliseconds longest{2000};  // each is twice the one before
};

// One thread at a time.
class StreamWriter {
 public:
  StreamWriter(queue::JobConsumer& consumer, JobLease& lease, WorkerMetrics& metrics, RetryDelays delays);

  // The next entry. While the queue is unavailable the same entry is tried again. Errors: kCancelled, kAborted (the job is
  // no longer ours), or what the queue refuses it with.
  Status put(std::string_view bytes);
  // The last entry and the end of the job. kFenced also when the lease ended before the queue came back.
  Result<queue::LeaseAnswer> finish(queue::JobState state,
                                    std::string_view bytes,
                                    std::int32_t code,
                                    std::string_view message);
  // Gives the job back, with the same patience.
  Result<queue::LeaseAnswer> release();

  // Seconds spent in the queue's calls, waits between tries included.
  double seconds() const { return seconds_; }

 private:
  template <typename Call>
  Result<queue::LeaseAnswer> patiently(bool even_if_cancelled, Call call);

  queue::JobConsumer& consumer_;
  JobLease& lease_;
  WorkerMetrics& metrics_;
  const RetryDelays delays_;
  std::uint64_t next_seq_ = 1;
  bool unanswered_ = false;  // entry next_seq_ was sent, and nobody knows whether it arrived
  double seconds_ = 0;
};

}  // namespace merope::worker
