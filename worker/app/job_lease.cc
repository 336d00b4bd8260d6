#include "worker/app/job_lease.h"

#include <algorithm>
#include <string>
#include <utility>

namespace merope::worker {

std::string_view to_string(LeaseLoss loss) {
  switch (loss) {
    case LeaseLoss::kNone: return "none";
    case LeaseLoss::kCancelled: return "cancelled";
    case LeaseLoss::kFenced: return "fenced";
    case LeaseLoss::kExpired: return "expired";
    case LeaseLoss::kStalled: return "stalled";
  }
  return "unknown";
}

JobLease::JobLease(queue::ClaimedJob job, const Clock& clock)
    : job_(std::move(job)),
      clock_(clock),
      claimed_at_(clock.now()),
      lease_end_(claimed_at_ + job_.lease),
      last_advance_(claimed_at_) {}

LeaseLoss JobLease::loss_locked() const {
  if (loss_ == LeaseLoss::kFenced || loss_ == LeaseLoss::kStalled) {
    return loss_;
  }
  // A cancelled job is still ours to end, until its lease is over.
  return clock_.now() >= lease_end_ ? LeaseLoss::kExpired : loss_;
}

LeaseLoss JobLease::loss() const {
  const std::lock_guard lock(mutex_);
  return loss_locked();
}

Status JobLease::status() const {
  const LeaseLoss why = loss();
  if (why == LeaseLoss::kNone) {
    return {};
  }
  if (why == LeaseLoss::kCancelled) {
    return Error{ErrorCode::kCancelled, "cancelled by the client"};
  }
  return Error{ErrorCode::kAborted, "lease lost: " + std::string(to_string(why))};
}

void JobLease::answered(queue::LeaseAnswer answer) {
  switch (answer) {
    case queue::LeaseAnswer::kOk: return;
    case queue::LeaseAnswer::kFenced: lose(LeaseLoss::kFenced); return;
    case queue::LeaseAnswer::kCancelled: lose(LeaseLoss::kCancelled); return;
  }
}

void JobLease::renewed(Clock::TimePoint asked_at) {
  const std::lock_guard lock(mutex_);
  lease_end_ = std::max(lease_end_, asked_at + job_.lease);
  ++n_changes_;
  changed_.notify_all();
}

void JobLease::lose(LeaseLoss why) {
  const std::lock_guard lock(mutex_);
  if (loss_ == LeaseLoss::kNone || loss_ == LeaseLoss::kCancelled) {
    loss_ = why;
  }
  ++n_changes_;
  changed_.notify_all();
}

void JobLease::advanced() {
  const std::lock_guard lock(mutex_);
  last_advance_ = clock_.now();
}

Clock::TimePoint JobLease::last_advance() const {
  const std::lock_guard lock(mutex_);
  return last_advance_;
}

void JobLease::wait_to_retry(std::chrono::milliseconds delay) {
  std::unique_lock lock(mutex_);
  const std::uint64_t before = n_changes_;
  changed_.wait_for(lock, delay, [&] { return n_changes_ != before; });
}

}  // namespace merope::worker
