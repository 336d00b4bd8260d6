// The queue from its three sides. Two implementations under one contract suite: memory and Redis.
//
// Accepted means: submit() has returned a job id. From then on the job ends exactly once, whatever process dies. Times are the
// queue's own (Redis TIME), so a clock of a machine that is wrong can not move a lease.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/queue/job.h"

namespace merope::queue {

// The lease is that of the worker that claims. The others are those of the server that accepts a job, and hold for this job
// whoever ends it.
struct QueueLimits {
  std::size_t max_queued = 1000;                    // more: submit() is refused with kResourceExhausted
  std::chrono::milliseconds lease{30'000};          // a worker renews it every third of it
  std::uint32_t max_attempts = 3;                   // lost leases before a job is poison: failed, copied to the dead letters
  std::chrono::milliseconds keep_job{86'400'000};   // an ended job can be asked for
  std::chrono::milliseconds keep_output{900'000};   // and its stream read
  std::size_t max_output_bytes = std::size_t{512} << 20U;  // sum of a job's entries
};

// An entry's payload is at most this long: the whole entry stays below Redis' 256 KiB allocation class.
inline constexpr std::size_t kMaxEntryBytes = 248 * 1024;

// The server's side. Each call may block for a round trip; any thread may call it.
class JobSubmitter {
 public:
  virtual ~JobSubmitter() = default;

  // Accepts a job, or returns the one accepted before under the same request_id. Errors: kAlreadyExists (known request_id,
  // other digest), kResourceExhausted (queue or memory full), kUnavailable (Redis away).
  virtual Result<SubmitOutcome> submit(const NewJob& job) = 0;
  // A queued job ends at once; a running one is told by its next write or beat. Errors: kNotFound, kUnavailable.
  virtual Result<JobRecord> cancel(const std::string& job_id) = 0;
  virtual Result<JobRecord> get(const std::string& job_id) = 0;
  // Newest first. `state` empty = all.
  virtual Result<std::vector<JobRecord>> list(std::optional<JobState> state, std::size_t limit) = 0;
  // Jobs that are served before this queued one; 0 when it is next or not queued.
  virtual Result<std::uint32_t> place(const std::string& job_id) = 0;
  virtual Result<QueueStats> stats() = 0;
  // Workers alive now.
  virtual Result<std::vector<WorkerRecord>> workers() = 0;
  // Announcements by model name, kept while workers sleep or restart.
  virtual Result<std::vector<std::string>> known_models() = 0;
  // One pass of the reconciler: lost leases are put back or ended as poison, expired waits ended, missing entries repaired.
  // Safe to call from several servers at once. Returns how many jobs it changed.
  virtual Result<std::size_t> reconcile() = 0;
};

// One worker's side. claim/put/finish/release from the engine or publisher thread, beat and announce from the lease keeper:
// implementations use a connection per call side and lock internally.
class JobConsumer {
 public:
  virtual ~JobConsumer() = default;

  // Waits up to `timeout` for a job, highest priority first. Empty: none came, or `stop` was requested. Jobs whose
  // max_queue_wait is over, or that were cancelled, are ended here and not returned.
  virtual Result<std::optional<ClaimedJob>> claim(std::chrono::milliseconds timeout, std::stop_token stop) = 0;

  // Appends an entry to the job's stream at {epoch, seq}. Repeating a put whose answer was lost is kOk and writes nothing.
  virtual Result<LeaseAnswer> put(const ClaimedJob& job, std::uint64_t seq, std::string_view bytes) = 0;
  // Renews the lease.
  virtual Result<LeaseAnswer> beat(const ClaimedJob& job) = 0;
  // Ends the job in a terminal state and appends the last entry {epoch, seq} in the same step. kFenced: nothing happened.
  // Repeating a finish whose answer was lost is kOk.
  virtual Result<LeaseAnswer> finish(const ClaimedJob& job,
                                     JobState state,
                                     std::uint64_t seq,
                                     std::string_view bytes,
                                     std::int32_t code,
                                     std::string_view message) = 0;
  // Gives the job back to the front of its class; does not count as an attempt.
  virtual Result<LeaseAnswer> release(const ClaimedJob& job) = 0;
  // Tells the servers that this worker lives; valid for 15 s. `model` is the name under which the announcement is kept.
  virtual Status announce(const std::string& model, std::string_view announcement, const std::string& current_job) = 0;
};

struct EventBatch {
  std::vector<StreamEntry> entries;  // ascending
  JobRecord record;                  // read after the entries: if it is terminal, no entry beyond last_seq will come
};

// The servers' side of the streams.
class JobEventSource {
 public:
  virtual ~JobEventSource() = default;

  // Up to `max_entries` entries after the cursor. Errors: kNotFound, kUnavailable. Any thread.
  virtual Result<EventBatch> read(const std::string& job_id, const Cursor& after, std::size_t max_entries) = 0;
  // Waits up to `timeout` for jobs that have something new; empty after the timeout. A wake-up may get lost: readers look
  // again every few seconds. One thread only.
  virtual Result<std::vector<std::string>> wait_for_wakeups(std::chrono::milliseconds timeout) = 0;
  // Makes the waiting thread return now. Any thread.
  virtual void interrupt() = 0;
};

}  // namespace merope::queue
