// Runs the scripts over pooled connections: EVALSHA, and EVAL when Redis has forgotten the script.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/queue/job_queue.h"
#include "core/queue/redis/connection_pool.h"
#include "core/queue/redis/scripts.h"

namespace merope::queue::redis {

// Internally locked; shared by submitter, consumers and event sources of a process.
class ScriptClient {
 public:
  // clock_ms: only for tests, which turn the time by hand; empty: Redis' own time.
  ScriptClient(Address address, Timeouts timeouts, QueueLimits limits, std::function<std::int64_t()> clock_ms);

  // Never an error reply. Errors: kUnavailable, kResourceExhausted (Redis' memory is full), kFailedPrecondition (password),
  // kInternal.
  Result<ReplyPtr> run(Script script, std::initializer_list<std::string_view> arguments);
  // Whether Redis answers and takes writes.
  Status ping();

  Connection make_connection() const { return pool_.make(); }
  const QueueLimits& limits() const { return limits_; }
  std::chrono::milliseconds command_timeout() const { return command_timeout_; }

 private:
  struct Loaded {
    std::string text;
    std::string sha;  // empty: not yet asked for
  };

  Result<std::string> sha_of(Script script, Connection& connection);

  ConnectionPool pool_;
  QueueLimits limits_;
  std::chrono::milliseconds command_timeout_;
  std::function<std::int64_t()> clock_ms_;
  std::array<std::string, 6> limit_arguments_;
  std::mutex mutex_;
  std::array<Loaded, kScriptCount> loaded_;
};

// What the scripts answer with. All return an Error (kInternal) for a reply of another shape, which a Redis of another
// release of the scripts could give.
Result<std::string_view> text_at(const redisReply& reply, std::size_t index);
Result<std::int64_t> number_at(const redisReply& reply, std::size_t index);
Result<const redisReply*> array_at(const redisReply& reply, std::size_t index);
Result<JobRecord> parse_record(const redisReply& reply);

}  // namespace merope::queue::redis
