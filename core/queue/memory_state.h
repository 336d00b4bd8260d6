// The rules of the queue as plain data structures: no lock, no wait, the time is an argument. What the Lua scripts in redis/
// do must answer exactly like this; a differential test holds the two together.
//
// - submit: A request id is remembered as long as its job. Running jobs do not count against max_queued.
// - order: Priority first. Within a priority, jobs that came back (released, lost lease) go first, in the order of their
//   return, then new ones in the order of submission.
// - claim: First puts back what lost its lease. Epoch and attempts rise; what older epochs wrote is deleted.
// - waiting: max_queue_wait runs until the first start; a job that came back does not expire.
// - cancel: Queued: ends at once. Running: from now on put, beat, release and finish answer kCancelled. release and finish
//   end the job as cancelled whatever state they bring (finish still appends its entry only when it brings kCancelled), and
//   so does a lost lease. No result follows an accepted cancel.
// - put: seq is last_seq + 1, or at most last_seq: then it was written before and the answer is kOk. A hole is an error. A
//   lease that is over but was not taken away still counts: only a newer epoch or state fences.
// - finish: Repeating it with the same epoch and state is kOk and changes nothing. The last entry may exceed
//   max_output_bytes.
// - release: attempts falls again. Repeating it is kFenced.
// - lost: attempts < max_attempts: queued again. Otherwise failed (kInternal) and copied to the dead letters.
// - ended: Spec and input are deleted at once, the stream after keep_output, the record and its request id after keep_job.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/queue/job.h"
#include "core/queue/job_queue.h"

namespace merope::queue {

// How long an announcement of a worker is believed.
inline constexpr std::int64_t kWorkerTtlMs = 15'000;

// Used by one thread at a time. `now` is in milliseconds since 1970 and never falls.
class MemoryState {
 public:
  explicit MemoryState(QueueLimits limits) : limits_(limits) {}

  Result<SubmitOutcome> submit(const NewJob& job, const std::string& new_job_id, std::int64_t now);
  Result<JobRecord> cancel(const std::string& job_id, std::int64_t now);
  Result<JobRecord> get(const std::string& job_id, std::int64_t now) const;
  std::vector<JobRecord> list(std::optional<JobState> state, std::size_t limit, std::int64_t now) const;
  std::uint32_t place(const std::string& job_id) const;
  QueueStats stats(std::int64_t now) const;
  std::vector<WorkerRecord> workers(std::int64_t now) const;
  std::vector<std::string> known_models() const;
  std::size_t reconcile(std::int64_t now);

  std::optional<ClaimedJob> claim(const std::string& worker, std::int64_t now);
  Result<LeaseAnswer> put(const ClaimedJob& claimed, std::uint64_t seq, std::string_view bytes);
  LeaseAnswer beat(const ClaimedJob& claimed, std::int64_t now);
  Result<LeaseAnswer> finish(const ClaimedJob& claimed,
                             JobState state,
                             std::uint64_t seq,
                             std::string_view bytes,
                             std::int32_t code,
                             std::string_view message,
                             std::int64_t now);
  LeaseAnswer release(const ClaimedJob& claimed, std::int64_t now);
  void announce(const std::string& worker,
                const std::string& model,
                std::string_view announcement,
                const std::string& current_job,
                std::int64_t now);

  Result<EventBatch> read(const std::string& job_id, const Cursor& after, std::size_t max_entries, std::int64_t now) const;

  // When the first lease ends: then a waiting claim has something to do. Empty: nothing runs.
  std::optional<std::int64_t> first_lease_end() const;
  // Job ids that changed since the last call, in that order.
  std::vector<std::string> take_woken() { return std::exchange(woken_, {}); }
  // Jobs that ended as poison, oldest first.
  const std::vector<std::string>& dead_letters() const { return dead_letters_; }

 private:
  // rank: 2 * priority, and one more for jobs that never ran.
  struct Place {
    std::uint32_t rank = 0;
    std::uint64_t order = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Job {
    JobRecord record;
    NewJob submitted;
    Place place;
    std::uint64_t submit_order = 0;
    std::int64_t lease_until = 0;
    std::int64_t output_expires = 0;  // 0: not ended
    std::int64_t expires = 0;
    std::size_t output_bytes = 0;
    std::vector<StreamEntry> entries;  // of record.epoch
  };

  const Job* find(const std::string& job_id, std::int64_t now) const;
  // The job when `claimed` is its running attempt, else null.
  Job* owned(const ClaimedJob& claimed);
  void enqueue(Job& job, bool came_back);
  void end(Job& job, JobState state, std::int32_t code, std::string_view message, std::int64_t now);
  void end_cancelled(Job& job, std::int64_t now);
  std::size_t return_lost(std::int64_t now);
  bool expire_wait(Job& job, std::int64_t now);
  void append(Job& job, std::uint64_t seq, std::string_view bytes);

  QueueLimits limits_;
  std::map<std::string, Job> jobs_;
  std::map<std::string, std::string> job_of_request_;
  std::map<Place, std::string> queued_;
  std::uint64_t next_order_ = 0;
  std::map<std::string, std::pair<WorkerRecord, std::int64_t>> workers_;  // with the time until which it is believed
  std::map<std::string, std::string> models_;
  std::vector<std::string> dead_letters_;
  std::vector<std::string> woken_;
};

}  // namespace merope::queue
