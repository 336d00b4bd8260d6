#include "server/watch_reactor.h"

#include <utility>

#include "server/error_details.h"

namespace merope::server {
namespace {

// Below this the next batch is fetched. A batch is at most four small entries or one fragment (248 KiB).
constexpr std::size_t kRoomBytes = 32 * 1024;

}  // namespace

std::shared_ptr<WatchReactor> WatchReactor::start(Method method,
                                                  grpc::CallbackServerContext* context,
                                                  const Clock& clock,
                                                  ServerMetrics& metrics) {
  std::shared_ptr<WatchReactor> reactor(new WatchReactor(method, context, clock, metrics));
  reactor->self_ = reactor;
  metrics.watchers.increment();
  return reactor;
}

WatchReactor::WatchReactor(Method method, grpc::CallbackServerContext* context, const Clock& clock, ServerMetrics& metrics)
    : method_(method), context_(context), clock_(clock), metrics_(metrics), started_at_(clock.now()) {}

void WatchReactor::on_room(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  on_room_ = std::move(callback);
}

bool WatchReactor::has_room() const {
  const std::lock_guard lock(mutex_);
  if (end_ || broken_ || done_) {
    return false;
  }
  room_is_wanted_ = waiting_bytes_ >= kRoomBytes;
  return !room_is_wanted_;
}

void WatchReactor::event(v1::JobEvent event) {
  {
    const std::lock_guard lock(mutex_);
    if (end_ || broken_ || done_) {
      return;
    }
    waiting_bytes_ += event.ByteSizeLong();
    waiting_.push_back(std::move(event));
  }
  proceed();
}

void WatchReactor::end(std::optional<Error> error) {
  {
    const std::lock_guard lock(mutex_);
    if (end_ || done_) {
      return;
    }
    end_ = error ? to_grpc_status(*error) : grpc::Status::OK;
    if (error) {  // what waits would only delay it; the client resumes from what it has
      waiting_.clear();
      waiting_bytes_ = 0;
    }
  }
  proceed();
}

std::optional<Clock::TimePoint> WatchReactor::stalled_since() const {
  const std::lock_guard lock(mutex_);
  return writing_ && !end_ ? std::optional(write_began_) : std::nullopt;
}

bool WatchReactor::hold() {
  const std::lock_guard lock(mutex_);
  holding_ = !finishing_ && !broken_ && !end_;
  return holding_;
}

void WatchReactor::release() {
  {
    const std::lock_guard lock(mutex_);
    holding_ = false;
  }
  proceed();
}

void WatchReactor::abort() {
  {
    const std::lock_guard lock(mutex_);
    if (!writing_) {
      return;  // nothing hangs
    }
    holding_ = true;
  }
  context_->TryCancel();  // gRPC may run OnCancel and OnWriteDone in here
  release();
}

bool WatchReactor::closed() const {
  const std::lock_guard lock(mutex_);
  return broken_ || done_;
}

void WatchReactor::proceed() {
  std::optional<grpc::Status> status;
  {
    const std::lock_guard lock(mutex_);
    if (writing_ || finishing_ || holding_) {
      return;
    }
    if (broken_) {
      finishing_ = true;
      status = end_.value_or(grpc::Status::CANCELLED);
    } else if (!waiting_.empty()) {
      in_flight_ = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_bytes_ -= in_flight_.ByteSizeLong();
      writing_ = true;
      write_began_ = clock_.now();
    } else if (end_) {
      finishing_ = true;
      status = *end_;
    } else {
      return;
    }
  }
  if (status) {
    const std::shared_ptr<WatchReactor> alive = shared_from_this();  // OnDone may run before Finish returns
    metrics_.call_ended(method_, status->error_code(), seconds_between(started_at_, clock_.now()));
    Finish(*status);
  } else {
    StartWrite(&in_flight_);
  }
}

void WatchReactor::OnWriteDone(bool ok) {
  const std::shared_ptr<WatchReactor> alive = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    broken_ |= !ok;
    metrics_.backpressure_seconds.increment(seconds_between(write_began_, clock_.now()));
  }
  proceed();
  std::function<void()> tell;
  {
    const std::lock_guard lock(mutex_);
    if (broken_ || (room_is_wanted_ && waiting_bytes_ < kRoomBytes)) {
      room_is_wanted_ = false;
      tell = on_room_;
    }
  }
  if (tell) {
    tell();
  }
}

void WatchReactor::OnCancel() {
  const std::shared_ptr<WatchReactor> alive = shared_from_this();
  std::function<void()> tell;
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    tell = on_room_;
  }
  proceed();
  if (tell) {
    tell();
  }
}

void WatchReactor::OnDone() {
  std::shared_ptr<WatchReactor> self;
  std::function<void()> tell;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
    waiting_.clear();
    tell = std::exchange(on_room_, nullptr);
    self = std::move(self_);
  }
  metrics_.watchers.decrement();
  if (tell) {
    tell();
  }
}

}  // namespace merope::server
