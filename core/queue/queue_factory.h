// The queue over Redis, as a program opens it.
//
// Redis must be 7.0 or newer and be started with `appendonly yes`, `appendfsync always` and `maxmemory-policy noeviction`,
// or what was accepted may get lost. The process must ignore SIGPIPE.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/queue/job_queue.h"

namespace merope::queue {

namespace redis {
class ScriptClient;
}

struct RedisQueueOptions {
  QueueLimits limits = {};
  std::chrono::milliseconds connect_timeout{2'000};
  std::chrono::milliseconds command_timeout{5'000};
  // For tests; empty: Redis' own time, and random ids. Every process on one Redis must use the same clock.
  std::function<std::int64_t()> now_ms = {};
  std::function<std::string()> new_job_id = {};
};

// Internally locked. The objects it hands out share its connections and may outlive it.
class RedisQueue {
 public:
  ~RedisQueue();
  RedisQueue(const RedisQueue&) = delete;
  RedisQueue& operator=(const RedisQueue&) = delete;

  std::unique_ptr<JobSubmitter> submitter();
  // `worker` is the name in JobRecord::worker, one per process: host and start time, not only the host.
  std::unique_ptr<JobConsumer> consumer(const std::string& worker);
  std::unique_ptr<JobEventSource> events();

  // Whether Redis answers and takes writes (it does not while it loads its file or its disk is full). For readiness; blocks
  // for up to the two timeouts. Errors: kUnavailable, kFailedPrecondition (password).
  Status ping();

 private:
  friend Result<std::unique_ptr<RedisQueue>> make_queue(std::string_view url, RedisQueueOptions options);
  RedisQueue(std::shared_ptr<redis::ScriptClient> client, std::function<std::string()> new_job_id);

  std::shared_ptr<redis::ScriptClient> client_;
  std::function<std::string()> new_job_id_;
};

// url: redis://[:password@]host[:port] or unix://[:password@]/path/of/socket. Connects when it is used first, so Redis may
// come later. Errors: kInvalidArgument.
Result<std::unique_ptr<RedisQueue>> make_queue(std::string_view url, RedisQueueOptions options = {});

// The same, and asks Redis for a sign of life. Errors: those of ping() too.
Result<std::unique_ptr<RedisQueue>> open_queue(std::string_view url, RedisQueueOptions options = {});

}  // namespace merope::queue
