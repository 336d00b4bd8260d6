// The sentences of the queue's errors, so that both implementations say the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/queue/job_queue.h"

namespace merope::queue {

inline Error unknown_job(const std::string& job_id) {
  return not_found("job " + job_id + ": unknown, or ended too long ago");
}

inline Error request_reused(const std::string& request_id) {
  return {ErrorCode::kAlreadyExists, "request_id: " + request_id + " was used before for a different request"};
}

inline Error queue_full(std::size_t max_queued) {
  return {ErrorCode::kResourceExhausted, "the queue is full: " + std::to_string(max_queued) + " jobs are waiting"};
}

inline Error entry_too_long(const std::string& job_id, std::size_t size) {
  return invalid_argument("job " + job_id + ": an entry of " + std::to_string(size) + " bytes; at most " +
                          std::to_string(kMaxEntryBytes) + " are possible");
}

inline Error hole_in_stream(const std::string& job_id, std::uint64_t seq, std::uint64_t last_seq) {
  return {ErrorCode::kFailedPrecondition,
          "job " + job_id + ": entry " + std::to_string(seq) + " does not follow entry " + std::to_string(last_seq)};
}

// kOutOfRange: trying again would not help.
inline Error output_too_long(const std::string& job_id, std::size_t max_bytes) {
  return {ErrorCode::kOutOfRange, "job " + job_id + ": its stream would exceed " + std::to_string(max_bytes) + " bytes"};
}

inline constexpr std::string_view kCancelledMessage = "cancelled on request";

inline std::string expired_message(std::int64_t max_queue_wait_ms) {
  return "no worker took the job within max_queue_wait (" + std::to_string(max_queue_wait_ms) + " ms)";
}

inline std::string poison_message(std::uint32_t attempts, const std::string& worker) {
  return std::to_string(attempts) + " workers were lost while they ran this job; the last one was " + worker;
}

}  // namespace merope::queue
