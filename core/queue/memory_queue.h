// The queue inside one process: the rules of memory_state.h behind a lock, with waiting. For tests of the server, the worker
// and the client without a Redis; nothing survives the process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/queue/job_queue.h"

namespace merope::queue {

// Internally locked. The objects it hands out share its state and may outlive it.
class MemoryQueue {
 public:
  struct Options {
    QueueLimits limits = {};
    std::function<std::int64_t()> now_ms = {};     // milliseconds since 1970; empty: the system's clock
    std::function<std::string()> new_job_id = {};  // empty: random
  };

  MemoryQueue();
  explicit MemoryQueue(Options options);
  ~MemoryQueue();
  MemoryQueue(const MemoryQueue&) = delete;
  MemoryQueue& operator=(const MemoryQueue&) = delete;

  std::unique_ptr<JobSubmitter> submitter();
  // `worker` is the name in JobRecord::worker. A claim that waits looks at a clock given in Options only when something
  // happens.
  std::unique_ptr<JobConsumer> consumer(const std::string& worker);
  // Each source has wake-ups of its own, from the moment it is made.
  std::unique_ptr<JobEventSource> events();

  struct Shared;  // in memory_queue.cc

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace merope::queue
