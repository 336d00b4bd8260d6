#include "core/queue/redis/script_client.h"

#include <charconv>
#include <optional>
#include <vector>

namespace merope::queue::redis {

ScriptClient::ScriptClient(Address address, Timeouts timeouts, QueueLimits limits, std::function<std::int64_t()> clock_ms)
    : pool_(std::move(address), timeouts),
      limits_(limits),
      command_timeout_(timeouts.command),
      clock_ms_(std::move(clock_ms)),
      limit_arguments_{std::to_string(limits.lease.count()),
                       std::to_string(limits.max_attempts),
                       std::to_string(limits.keep_job.count()),
                       std::to_string(limits.keep_output.count()),
                       std::to_string(limits.max_queued),
                       std::to_string(limits.max_output_bytes)} {
  for (std::size_t i = 0; i < kScriptCount; ++i) {
    loaded_[i].text = script_text(static_cast<Script>(i));
  }
}

Result<std::string> ScriptClient::sha_of(Script script, Connection& connection) {
  Loaded& loaded = loaded_[static_cast<std::size_t>(script)];
  {
    const std::lock_guard lock(mutex_);
    if (!loaded.sha.empty()) {
      return loaded.sha;
    }
  }
  const std::array<std::string_view, 3> load{"SCRIPT", "LOAD", loaded.text};
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply, connection.command(load));
  if (is_error(*reply)) {
    return connection.error_of(*reply);
  }
  const std::lock_guard lock(mutex_);
  loaded.sha.assign(reply->str, reply->len);
  return loaded.sha;
}

Result<ReplyPtr> ScriptClient::run(Script script, std::initializer_list<std::string_view> arguments) {
  const std::string now = clock_ms_ ? std::to_string(clock_ms_()) : std::string();
  // One key, so that a proxy or a cluster client would know the slot.
  std::vector<std::string_view> command{"EVALSHA", "", "1", "{merope}:jobs", now};
  command.insert(command.end(), limit_arguments_.begin(), limit_arguments_.end());
  command.insert(command.end(), arguments);
  return pool_.with_connection([&](Connection& connection) -> Result<ReplyPtr> {
    MEROPE_ASSIGN_OR_RETURN(const std::string sha, sha_of(script, connection));
    command[1] = sha;
    MEROPE_ASSIGN_OR_RETURN(ReplyPtr reply, connection.command(command));
    if (has_error_code(*reply, "NOSCRIPT")) {
      command[0] = "EVAL";
      command[1] = loaded_[static_cast<std::size_t>(script)].text;
      MEROPE_ASSIGN_OR_RETURN(reply, connection.command(command));
    }
    if (is_error(*reply)) {
      return connection.error_of(*reply);
    }
    return reply;
  });
}

Status ScriptClient::ping() {
  return pool_.with_connection([](Connection& connection) -> Status {
    const std::array<std::string_view, 1> ping{"PING"};
    MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply, connection.command(ping));
    if (is_error(*reply)) {
      return connection.error_of(*reply);
    }
    return {};
  });
}

namespace {

const redisReply* element(const redisReply& reply, std::size_t index) {
  return reply.type == REDIS_REPLY_ARRAY && index < reply.elements ? reply.element[index] : nullptr;
}

Error misshapen(const char* expected, std::size_t index) {
  return internal_error("the answer of a queue script has no " + std::string(expected) + " at position " +
                        std::to_string(index));
}

}  // namespace

Result<std::string_view> text_at(const redisReply& reply, std::size_t index) {
  const redisReply* found = element(reply, index);
  if (found == nullptr || (found->type != REDIS_REPLY_STRING && found->type != REDIS_REPLY_STATUS)) {
    return misshapen("text", index);
  }
  return std::string_view(found->str, found->len);
}

Result<std::int64_t> number_at(const redisReply& reply, std::size_t index) {
  const redisReply* found = element(reply, index);
  if (found != nullptr && found->type == REDIS_REPLY_INTEGER) {
    return static_cast<std::int64_t>(found->integer);
  }
  if (found != nullptr && found->type == REDIS_REPLY_STRING) {
    std::int64_t number = 0;
    const char* end = found->str + found->len;
    if (const auto parsed = std::from_chars(found->str, end, number); parsed.ec == std::errc() && parsed.ptr == end) {
      return number;
    }
  }
  return misshapen("number", index);
}

Result<const redisReply*> array_at(const redisReply& reply, std::size_t index) {
  const redisReply* found = element(reply, index);
  if (found == nullptr || found->type != REDIS_REPLY_ARRAY) {
    return misshapen("array", index);
  }
  return found;
}

Result<JobRecord> parse_record(const redisReply& reply) {
  // The order of SHOWN in scripts.cc, after the id.
  std::array<std::int64_t, 14> numbers{};
  for (const std::size_t index : {3U, 4U, 5U, 7U, 8U, 9U, 10U, 11U, 13U}) {
    MEROPE_ASSIGN_OR_RETURN(numbers[index], number_at(reply, index));
  }
  std::array<std::string_view, 14> texts{};
  for (const std::size_t index : {0U, 1U, 2U, 6U, 12U}) {
    MEROPE_ASSIGN_OR_RETURN(texts[index], text_at(reply, index));
  }
  std::optional<JobState> state;
  for (const JobState known : {JobState::kQueued,
                               JobState::kRunning,
                               JobState::kSucceeded,
                               JobState::kFailed,
                               JobState::kCancelled,
                               JobState::kExpired}) {
    if (texts[2] == to_string(known)) {
      state = known;
    }
  }
  if (!state || numbers[3] < 0 || numbers[3] > 2) {
    return misshapen("known state and priority", 2);
  }
  JobRecord record;
  record.job_id = texts[0];
  record.request_id = texts[1];
  record.state = *state;
  record.priority = static_cast<Priority>(numbers[3]);
  record.attempts = static_cast<std::uint32_t>(numbers[4]);
  record.epoch = static_cast<std::uint64_t>(numbers[5]);
  record.worker = texts[6];
  record.submitted_ms = numbers[7];
  record.started_ms = numbers[8];
  record.ended_ms = numbers[9];
  record.cancel_requested = numbers[10] != 0;
  record.code = static_cast<std::int32_t>(numbers[11]);
  record.message = texts[12];
  record.last_seq = static_cast<std::uint64_t>(numbers[13]);
  return record;
}

}  // namespace merope::queue::redis
