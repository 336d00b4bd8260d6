#include "core/queue/redis/redis_event_source.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "core/queue/queue_errors.h"
#include "core/queue/redis/keys.h"

namespace merope::queue::redis {
namespace {

using std::chrono::milliseconds;

// "<epoch>-<seq>"
Result<Cursor> parse_cursor(std::string_view id) {
  Cursor cursor;
  const char* end = id.data() + id.size();
  const auto epoch = std::from_chars(id.data(), end, cursor.epoch);
  if (epoch.ec == std::errc() && epoch.ptr != end && *epoch.ptr == '-') {
    const auto seq = std::from_chars(epoch.ptr + 1, end, cursor.seq);
    if (seq.ec == std::errc() && seq.ptr == end) {
      return cursor;
    }
  }
  return internal_error("a stream entry has the id '" + std::string(id) + "', which is not <epoch>-<seq>");
}

}  // namespace

Result<EventBatch> RedisEventSource::read(const std::string& job_id, const Cursor& after, std::size_t max_entries) {
  // Redis refuses to look behind its greatest id; nothing is there.
  const Cursor start = std::min(after, Cursor{std::numeric_limits<std::int64_t>::max(), 0});
  MEROPE_ASSIGN_OR_RETURN(
      const ReplyPtr reply,
      client_->run(Script::kRead,
                   {job_id, std::to_string(start.epoch), std::to_string(start.seq), std::to_string(max_entries)}));
  MEROPE_ASSIGN_OR_RETURN(const std::string_view answer, text_at(*reply, 0));
  if (answer == "unknown") {
    return unknown_job(job_id);
  }
  EventBatch batch;
  MEROPE_ASSIGN_OR_RETURN(const redisReply* record, array_at(*reply, 1));
  MEROPE_ASSIGN_OR_RETURN(batch.record, parse_record(*record));
  MEROPE_ASSIGN_OR_RETURN(const redisReply* entries, array_at(*reply, 2));
  for (std::size_t i = 0; i + 1 < entries->elements; i += 2) {
    MEROPE_ASSIGN_OR_RETURN(const std::string_view id, text_at(*entries, i));
    MEROPE_ASSIGN_OR_RETURN(const std::string_view bytes, text_at(*entries, i + 1));
    MEROPE_ASSIGN_OR_RETURN(const Cursor cursor, parse_cursor(id));
    batch.entries.push_back({cursor, std::string(bytes)});
  }
  return batch;
}

Status RedisEventSource::subscribe() {
  const std::array<std::string_view, 1> ping{"PING"};
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr pong, subscription_.command(ping));
  if (is_error(*pong)) {
    Error error = subscription_.error_of(*pong);
    subscription_.close();
    return error;
  }
  const std::array<std::string_view, 2> subscribe{"SUBSCRIBE", kWakeChannel};
  return subscription_.send(subscribe);
}

Result<std::vector<std::string>> RedisEventSource::wait_for_wakeups(milliseconds timeout) {
  constexpr milliseconds kLongestPause{1'000};
  std::vector<std::string> woken;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  Status failed;
  if (!subscription_.is_open()) {
    failed = subscribe();
  }
  while (failed) {
    // What is there already is taken along without waiting.
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    Result<ReplyPtr> reply =
        subscription_.next(woken.empty() ? std::max(left, milliseconds(0)) : milliseconds(0), interrupted_);
    if (!reply) {
      failed = reply.error();
      break;
    }
    if (*reply == nullptr) {
      interrupted_.drain();
      return woken;
    }
    // {"message", channel, job id}; {"subscribe", channel, 1} comes first.
    const Result<std::string_view> kind = text_at(**reply, 0);
    const Result<std::string_view> job_id = text_at(**reply, 2);
    if (kind && job_id && *kind == "message" && std::find(woken.begin(), woken.end(), *job_id) == woken.end()) {
      woken.emplace_back(*job_id);
    }
  }
  if (!woken.empty()) {
    return woken;
  }
  interrupted_.wait_for(std::min(timeout, kLongestPause));
  interrupted_.drain();
  return failed.error();
}

}  // namespace merope::queue::redis
