// A queue of either kind whose time and job ids the test makes, so that both kinds can be asked the same and compared.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/queue/job_queue.h"

namespace merope::queue {

class World {
 public:
  virtual ~World() = default;
  virtual std::unique_ptr<JobSubmitter> submitter() = 0;
  virtual std::unique_ptr<JobConsumer> consumer(const std::string& worker) = 0;
  virtual std::unique_ptr<JobEventSource> events() = 0;

  void advance(std::chrono::milliseconds by) { now_ms_ += by.count(); }
  std::int64_t now_ms() const { return now_ms_; }

 protected:
  std::string next_id() { return "job-" + std::to_string(++last_id_); }

 private:
  std::atomic<std::int64_t> now_ms_{1'700'000'000'123};
  std::atomic<std::uint64_t> last_id_{0};
};

using WorldMaker = std::unique_ptr<World> (*)(const QueueLimits& limits);

std::unique_ptr<World> make_memory_world(const QueueLimits& limits);
// On one server per test program, which is emptied for each world.
std::unique_ptr<World> make_redis_world(const QueueLimits& limits);

// The limits of most tests: small, so that they are met.
inline QueueLimits small_limits() {
  QueueLimits limits;
  limits.max_queued = 5;
  limits.lease = std::chrono::milliseconds(30'000);
  limits.max_attempts = 3;
  limits.keep_job = std::chrono::milliseconds(3'600'000);
  limits.keep_output = std::chrono::milliseconds(600'000);
  limits.max_output_bytes = 1000;
  return limits;
}

inline NewJob new_job(const std::string& request_id, Priority priority = Priority::kNormal) {
  NewJob job;
  job.request_id = request_id;
  job.digest = "digest of " + request_id;
  job.priority = priority;
  job.spec = std::string("spec\0of ", 8) + request_id;
  job.input = std::string("input\r\n\0of ", 11) + request_id;
  return job;
}

}  // namespace merope::queue
