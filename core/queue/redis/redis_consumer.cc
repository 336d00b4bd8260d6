#include "core/queue/redis/redis_consumer.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/base/ids.h"
#include "core/queue/queue_errors.h"
#include "core/queue/redis/keys.h"

namespace merope::queue::redis {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{100};
constexpr milliseconds kLongestPause{2'000};

Result<ClaimedJob> parse_claimed(const redisReply& reply, milliseconds lease) {
  ClaimedJob job;
  job.lease = lease;
  MEROPE_ASSIGN_OR_RETURN(job.job_id, text_at(reply, 1));
  MEROPE_ASSIGN_OR_RETURN(const std::int64_t epoch, number_at(reply, 2));
  MEROPE_ASSIGN_OR_RETURN(const std::int64_t attempt, number_at(reply, 3));
  MEROPE_ASSIGN_OR_RETURN(job.spec, text_at(reply, 4));
  MEROPE_ASSIGN_OR_RETURN(job.input, text_at(reply, 5));
  MEROPE_ASSIGN_OR_RETURN(const std::int64_t max_run_time, number_at(reply, 6));
  MEROPE_ASSIGN_OR_RETURN(const std::int64_t waited, number_at(reply, 7));
  job.epoch = static_cast<std::uint64_t>(epoch);
  job.attempt = static_cast<std::uint32_t>(attempt);
  job.max_run_time = milliseconds(max_run_time);
  job.waited = milliseconds(waited);
  return job;
}

Result<LeaseAnswer> parse_answer(const redisReply& reply, const ClaimedJob& job, std::uint64_t seq) {
  MEROPE_ASSIGN_OR_RETURN(const std::string_view answer, text_at(reply, 0));
  if (answer == "ok") {
    return LeaseAnswer::kOk;
  }
  if (answer == "fenced") {
    return LeaseAnswer::kFenced;
  }
  if (answer == "cancelled") {
    return LeaseAnswer::kCancelled;
  }
  if (answer == "long") {
    MEROPE_ASSIGN_OR_RETURN(const std::int64_t max_bytes, number_at(reply, 1));
    return output_too_long(job.job_id, static_cast<std::size_t>(max_bytes));
  }
  if (answer == "hole") {
    MEROPE_ASSIGN_OR_RETURN(const std::int64_t last_seq, number_at(reply, 1));
    return hole_in_stream(job.job_id, seq, static_cast<std::uint64_t>(last_seq));
  }
  return internal_error("job " + job.job_id + ": a queue script answered '" + std::string(answer) + "'");
}

}  // namespace

Result<std::optional<ClaimedJob>> RedisConsumer::claim(milliseconds timeout, std::stop_token stop) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  if (claim_token_.empty()) {
    claim_token_ = random_id("claim");
  }
  const Wakeup stopped;
  const std::stop_callback on_stop(stop, [&stopped] { stopped.signal(); });
  milliseconds pause = kFirstPause;
  while (!stop.stop_requested()) {
    const auto left = [&] { return std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()); };
    Status failed;
    if (const Result<ReplyPtr> reply = client_->run(Script::kClaim, {worker_, claim_token_})) {
      pause = kFirstPause;
      claim_token_ = random_id("claim");
      MEROPE_ASSIGN_OR_RETURN(const std::string_view answer, text_at(**reply, 0));
      if (answer == "job") {
        MEROPE_ASSIGN_OR_RETURN(ClaimedJob job, parse_claimed(**reply, client_->limits().lease));
        return std::optional<ClaimedJob>(std::move(job));
      }
      if (left() <= milliseconds(0)) {
        return std::optional<ClaimedJob>();
      }
      failed = wait_for_work(**reply, left(), stopped);
    } else {
      failed = reply.error();
    }
    if (!failed) {
      if (failed.error().code != ErrorCode::kUnavailable || left() <= milliseconds(0)) {
        return failed.error();
      }
      stopped.wait_for(std::min(pause, left()));
      pause = std::min(2 * pause, kLongestPause);
    }
  }
  return std::optional<ClaimedJob>();
}

Status RedisConsumer::wait_for_work(const redisReply& none, milliseconds timeout, const Wakeup& stopped) {
  MEROPE_ASSIGN_OR_RETURN(const std::int64_t lease_end_ms, number_at(none, 1));
  const milliseconds block = lease_end_ms < 0 ? timeout : std::min(timeout, milliseconds(lease_end_ms));
  const std::string block_ms = std::to_string(std::max<std::int64_t>(block.count(), 1));
  std::vector<std::string_view> command{"XREAD", "COUNT", "1", "BLOCK", block_ms, "STREAMS"};
  command.insert(command.end(), kStreams.begin(), kStreams.end());
  for (std::size_t i = 0; i < kStreams.size(); ++i) {
    MEROPE_ASSIGN_OR_RETURN(const std::string_view last_id, text_at(none, 2 + i));
    command.push_back(last_id);
  }
  MEROPE_RETURN_IF_ERROR(doorbell_.send(command));
  // An answer that is later than this means that Redis hangs.
  Result<ReplyPtr> reply = doorbell_.next(block + client_->command_timeout(), stopped);
  if (!reply) {
    return std::move(reply).error();
  }
  if (*reply == nullptr) {
    // The answer is still to come; nobody would match it.
    doorbell_.close();
    if (stopped.wait_for(milliseconds(0))) {
      return {};
    }
    return unavailable("Redis did not end a blocking read in time");
  }
  if (is_error(**reply)) {
    return doorbell_.error_of(**reply);
  }
  return {};
}

Result<LeaseAnswer> RedisConsumer::put(const ClaimedJob& job, std::uint64_t seq, std::string_view bytes) {
  if (bytes.size() > kMaxEntryBytes) {
    return entry_too_long(job.job_id, bytes.size());
  }
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply,
                          client_->run(Script::kPut, {job.job_id, std::to_string(job.epoch), std::to_string(seq), bytes}));
  return parse_answer(*reply, job, seq);
}

Result<LeaseAnswer> RedisConsumer::beat(const ClaimedJob& job) {
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply, client_->run(Script::kBeat, {job.job_id, std::to_string(job.epoch)}));
  return parse_answer(*reply, job, 0);
}

Result<LeaseAnswer> RedisConsumer::finish(const ClaimedJob& job,
                                          JobState state,
                                          std::uint64_t seq,
                                          std::string_view bytes,
                                          std::int32_t code,
                                          std::string_view message) {
  MEROPE_CHECK(is_terminal(state), "finish() with a state that is not an end");
  if (bytes.size() > kMaxEntryBytes) {
    return entry_too_long(job.job_id, bytes.size());
  }
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply,
                          client_->run(Script::kFinish,
                                       {job.job_id,
                                        std::to_string(job.epoch),
                                        std::to_string(seq),
                                        bytes,
                                        to_string(state),
                                        std::to_string(code),
                                        message}));
  return parse_answer(*reply, job, seq);
}

Result<LeaseAnswer> RedisConsumer::release(const ClaimedJob& job) {
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply, client_->run(Script::kRelease, {job.job_id, std::to_string(job.epoch)}));
  return parse_answer(*reply, job, 0);
}

Status RedisConsumer::announce(const std::string& model, std::string_view announcement, const std::string& current_job) {
  const Result<ReplyPtr> reply = client_->run(Script::kAnnounce, {worker_, model, announcement, current_job});
  return reply ? Status() : Status(reply.error());
}

}  // namespace merope::queue::redis
