// The right to work on a job, as this process believes in it: shared by the engine thread, the publisher and the lease
// keeper.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/queue/job.h"

namespace merope::worker {

enum class LeaseLoss : std::uint8_t {
  kNone,
  kCancelled,  // the client wants it to stop; the lease itself is still ours
  kFenced,     // the queue has given the job to another attempt
  kExpired,    // not renewed in time, by this machine's monotonic clock: another attempt may have begun
  kStalled,    // the engine thread does not advance
};
std::string_view to_string(LeaseLoss loss);

// Internally locked.
class JobLease {
 public:
  // The lease runs from now on.
  JobLease(queue::ClaimedJob job, const Clock& clock);

  const queue::ClaimedJob& job() const { return job_; }
  Clock::TimePoint claimed_at() const { return claimed_at_; }

  LeaseLoss loss() const;
  // OK; kCancelled; or kAborted when the job is no longer ours.
  Status status() const;

  // What the queue answered to a write or a beat.
  void answered(queue::LeaseAnswer answer);
  // A beat was accepted. `asked_at`: before it was sent, so that our idea of the lease's end is never later than the
  // queue's.
  void renewed(Clock::TimePoint asked_at);
  // The first reason stays.
  void lose(LeaseLoss why);

  // The engine thread did something.
  void advanced();
  Clock::TimePoint last_advance() const;

  // Between two tries of a write: waits until `delay` is over, the lease is lost, or the queue has answered a beat again.
  void wait_to_retry(std::chrono::milliseconds delay);

 private:
  LeaseLoss loss_locked() const;

  const queue::ClaimedJob job_;
  const Clock& clock_;
  const Clock::TimePoint claimed_at_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t n_changes_ = 0;
  Clock::TimePoint lease_end_;
  Clock::TimePoint last_advance_;
  LeaseLoss loss_ = LeaseLoss::kNone;
};

}  // namespace merope::worker
