#include "worker/app/lease_keeper.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "core/base/log.h"

namespace merope::worker {

LeaseKeeper::LeaseKeeper(queue::JobConsumer& consumer, const Clock& clock, WorkerMetrics& metrics, Options options)
    : consumer_(consumer),
      clock_(clock),
      metrics_(metrics),
      options_(std::move(options)),
      next_beat_(clock.now()),
      next_announce_(clock.now()) {}

LeaseKeeper::~LeaseKeeper() {
  thread_.request_stop();
}

void LeaseKeeper::start() {
  thread_ = std::jthread([this](std::stop_token stop) {
    pthread_setname_np(pthread_self(), "lease");
    while (!stop.stop_requested()) {
      const Clock::Duration pause = tick();
      std::unique_lock lock(mutex_);
      woken_.wait_for(lock, stop, pause, [this] { return wake_; });
      wake_ = false;
    }
  });
}

std::shared_ptr<JobLease> LeaseKeeper::hold(queue::ClaimedJob job) {
  auto lease = std::make_shared<JobLease>(std::move(job), clock_);
  const std::lock_guard lock(mutex_);
  lease_ = lease;
  next_beat_ = lease->claimed_at() + lease->job().lease / 3;
  next_announce_ = lease->claimed_at();  // tells at once what it works on
  wake_ = true;
  woken_.notify_all();
  return lease;
}

void LeaseKeeper::drop() {
  const std::lock_guard lock(mutex_);
  lease_.reset();
  next_announce_ = clock_.now();
  wake_ = true;
  woken_.notify_all();
}

Clock::Duration LeaseKeeper::tick() {
  std::shared_ptr<JobLease> lease;
  bool beat_due = false;
  bool announce_due = false;
  const Clock::TimePoint now = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    lease = lease_;
    beat_due = lease != nullptr && now >= next_beat_;
    announce_due = now >= next_announce_;
  }
  if (beat_due) {
    keep(lease, now);
  }
  if (announce_due) {
    announce(lease == nullptr ? "" : lease->job().job_id, now);
  }
  const std::lock_guard lock(mutex_);
  const Clock::TimePoint next = lease_ == nullptr ? next_announce_ : std::min(next_announce_, next_beat_);
  return std::max(next - clock_.now(), Clock::Duration::zero());
}

void LeaseKeeper::keep(const std::shared_ptr<JobLease>& lease, Clock::TimePoint now) {
  const queue::ClaimedJob& job = lease->job();
  Clock::Duration pause = job.lease / 3;
  const LeaseLoss loss = lease->loss();
  if (loss != LeaseLoss::kNone && loss != LeaseLoss::kCancelled) {
    // Nothing to renew: the engine thread finds out at its next step. A cancelled job is still ours to end.
  } else if (now - lease->last_advance() >= options_.stall_limit) {
    log::error("engine stalled, lease given up",
               {{"job", job.job_id},
                {"epoch", job.epoch},
                {"seconds_without_a_step", seconds_between(lease->last_advance(), now)}});
    lease->lose(LeaseLoss::kStalled);
    if (!stalled_.exchange(true) && options_.on_stall) {
      options_.on_stall();
    }
  } else if (const Result<queue::LeaseAnswer> answer = consumer_.beat(job); !answer) {
    metrics_.queue_errors.increment();
    if (queue_answers_.exchange(false)) {
      log::warn("beat failed", {{"job", job.job_id}, {"epoch", job.epoch}, {"reason", answer.error().message}});
    }
    pause = job.lease / 10;
  } else {
    queue_answers_ = true;
    if (*answer != queue::LeaseAnswer::kFenced) {
      lease->renewed(now);
    }
    lease->answered(*answer);
  }
  const std::lock_guard lock(mutex_);
  if (lease_ == lease) {
    next_beat_ = now + pause;
  }
}

void LeaseKeeper::announce(const std::string& current_job, Clock::TimePoint now) {
  const Status status = consumer_.announce(options_.model, options_.announcement, current_job);
  if (!status) {
    metrics_.queue_errors.increment();
    if (queue_answers_.exchange(false)) {
      log::warn("announcement failed", {{"reason", status.error().message}});
    }
  } else {
    queue_answers_ = true;
    announced_ = true;
  }
  const std::lock_guard lock(mutex_);
  if (next_announce_ <= now) {
    next_announce_ = now + options_.announce_every;
  }
}

}  // namespace merope::worker
