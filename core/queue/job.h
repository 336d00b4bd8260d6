// A job as the queue knows it. Payloads (spec, input, event bytes) are opaque here.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace merope::queue {

// queued -> running -> succeeded | failed | cancelled | expired; running -> queued when the lease is lost (counts as an
// attempt) or the job is released (does not). A terminal state never changes.
enum class JobState : std::uint8_t { kQueued, kRunning, kSucceeded, kFailed, kCancelled, kExpired };
enum class Priority : std::uint8_t { kHigh, kNormal, kLow };

constexpr bool is_terminal(JobState state) { return state != JobState::kQueued && state != JobState::kRunning; }
std::string_view to_string(JobState state);  // "queued"
std::string_view to_string(Priority priority);

struct NewJob {
  std::string request_id;  // made up by the caller when the client gave none
  std::string digest;      // SHA-256 of the canonical request: the same request_id with another digest is refused
  Priority priority = Priority::kNormal;
  std::string spec;
  std::string input;                               // deleted when the job ends
  std::chrono::milliseconds max_queue_wait{0};     // 0 = no limit
  std::chrono::milliseconds max_run_time{0};       // of one attempt; 0 = no limit; kept by the worker
};

struct SubmitOutcome {
  std::string job_id;
  bool duplicate = false;  // this request_id had been accepted before
};

// A position in a job's event stream, ordered; {0, 0} is before the first.
struct Cursor {
  std::uint64_t epoch = 0;  // rises with every attempt
  std::uint64_t seq = 0;    // 1, 2, 3, ... within an epoch, without holes
  auto operator<=>(const Cursor&) const = default;
};

struct StreamEntry {
  Cursor cursor;
  std::string bytes;
};

// Everything the queue remembers of a job. Times are milliseconds since 1970 by the queue's own clock; 0 = not yet.
struct JobRecord {
  std::string job_id;
  std::string request_id;
  JobState state = JobState::kQueued;
  Priority priority = Priority::kNormal;
  std::uint32_t attempts = 0;
  std::uint64_t epoch = 0;
  std::string worker;
  std::int64_t submitted_ms = 0;
  std::int64_t started_ms = 0;
  std::int64_t ended_ms = 0;
  bool cancel_requested = false;
  std::int32_t code = 0;  // ErrorCode of a failed, cancelled or expired job
  std::string message;
  std::uint64_t last_seq = 0;  // of the newest entry written in `epoch`; tells a reader of an ended job where its stream ends
};

struct ClaimedJob {
  std::string job_id;
  std::uint64_t epoch = 0;
  std::uint32_t attempt = 1;
  std::string spec;
  std::string input;
  std::chrono::milliseconds lease{0};
  std::chrono::milliseconds max_run_time{0};  // 0 = no limit
  std::chrono::milliseconds waited{0};        // since submission
};

struct QueueStats {
  std::uint64_t queued = 0;
  std::uint64_t running = 0;
  std::chrono::milliseconds oldest_queued{0};  // age of the job that has waited longest
};

struct WorkerRecord {
  std::string name;
  std::string announcement;  // bytes of v1.WorkerAnnouncement
  std::string current_job;
};

// What a worker is told when it writes: go on, or stop because the job is another's now or was cancelled.
enum class LeaseAnswer : std::uint8_t { kOk, kFenced, kCancelled };

}  // namespace merope::queue
