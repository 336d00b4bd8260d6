// One unary call that is answered from another thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "core/base/clock.h"
#include "core/base/result.h"
#include "server/error_details.h"
#include "server/server_metrics.h"

namespace merope::server {

// Internally locked. It keeps itself alive until gRPC is done with the call. A call that is cancelled or whose deadline is
// over ends at once, whatever the thread that works on it waits for.
template <typename Response>
class UnaryCall final : public grpc::ServerUnaryReactor, public std::enable_shared_from_this<UnaryCall<Response>> {
 public:
  static std::shared_ptr<UnaryCall> start(Method method, Response* response, const Clock& clock, ServerMetrics& metrics) {
    std::shared_ptr<UnaryCall> call(new UnaryCall(method, response, clock, metrics));
    call->self_ = call;
    return call;
  }

  // The first answer counts. Any thread.
  void finish(Result<Response> result) {
    {
      const std::lock_guard lock(mutex_);
      if (result_) {
        return;
      }
      result_.emplace(std::move(result));
      if (holding_) {
        return;  // release() answers
      }
    }
    answer();
  }

  // Between the two the call's request stays alive, even when the call is cancelled. False: the call is over already.
  bool hold() {
    const std::lock_guard lock(mutex_);
    holding_ = !result_;
    return holding_;
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      holding_ = false;
      if (!result_) {
        return;
      }
    }
    answer();
  }

  bool is_over() const {
    const std::lock_guard lock(mutex_);
    return result_.has_value();
  }

 private:
  UnaryCall(Method method, Response* response, const Clock& clock, ServerMetrics& metrics)
      : method_(method), response_(response), clock_(clock), metrics_(metrics), started_at_(clock.now()) {}

  // Called once: by the finish() that set the result, or by the release() it was left to.
  void answer() {
    const std::shared_ptr<UnaryCall> alive = this->shared_from_this();  // OnDone may run before Finish returns
    grpc::Status status = grpc::Status::OK;
    if (*result_) {
      *response_ = std::move(**result_);
    } else {
      status = to_grpc_status(result_->error());
    }
    metrics_.call_ended(method_, status.error_code(), seconds_between(started_at_, clock_.now()));
    this->Finish(std::move(status));
  }

  void OnCancel() override { finish(Error{ErrorCode::kCancelled, "the call was cancelled or its deadline is over"}); }
  void OnDone() override { const std::shared_ptr<UnaryCall> last = std::move(self_); }

  const Method method_;
  Response* const response_;
  const Clock& clock_;
  ServerMetrics& metrics_;
  const Clock::TimePoint started_at_;
  std::shared_ptr<UnaryCall> self_;

  mutable std::mutex mutex_;
  std::optional<Result<Response>> result_;  // not touched any more once it is there
  bool holding_ = false;
};

}  // namespace merope::server
