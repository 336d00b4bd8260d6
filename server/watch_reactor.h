// One streaming call (Watch or Generate): writes events one at a time, as fast as the client takes them.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>

#include "core/base/clock.h"
#include "merope/v1/generation.pb.h"
#include "server/event_receiver.h"
#include "server/server_metrics.h"

namespace merope::server {

// Internally locked. It keeps itself alive until gRPC is done with the call. Start* and Finish of gRPC are called outside
// the lock and never two at once: whoever sets writing_ or finishing_ makes the call, and while a write is in flight only
// its end decides what comes next.
class WatchReactor final : public grpc::ServerWriteReactor<v1::JobEvent>,
                           public EventReceiver,
                           public std::enable_shared_from_this<WatchReactor> {
 public:
  static std::shared_ptr<WatchReactor> start(Method method,
                                             grpc::CallbackServerContext* context,
                                             const Clock& clock,
                                             ServerMetrics& metrics);
  // Set at most once, before the receiver is given to the fan-out. Called without the lock when has_room() was false and
  // there is room again, and when the call is over.
  void on_room(std::function<void()> callback);

  // Between the two the call's request stays alive, even when the call is cancelled. False: the call is over already.
  bool hold();
  void release();

  // EventReceiver
  bool has_room() const override;
  void event(v1::JobEvent event) override;
  void end(std::optional<Error> error) override;
  std::optional<Clock::TimePoint> stalled_since() const override;
  void abort() override;
  bool closed() const override;

 private:
  WatchReactor(Method method, grpc::CallbackServerContext* context, const Clock& clock, ServerMetrics& metrics);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // Takes the next step if no write is in flight: writes the next event, or finishes.
  void proceed();

  const Method method_;
  grpc::CallbackServerContext* const context_;
  const Clock& clock_;
  ServerMetrics& metrics_;
  const Clock::TimePoint started_at_;
  std::shared_ptr<WatchReactor> self_;

  mutable std::mutex mutex_;
  std::function<void()> on_room_;
  std::deque<v1::JobEvent> waiting_;
  std::size_t waiting_bytes_ = 0;
  v1::JobEvent in_flight_;  // unchanged while writing_
  Clock::TimePoint write_began_;
  bool writing_ = false;
  bool broken_ = false;                  // cancelled, or a write failed: nothing more will arrive
  std::optional<grpc::Status> end_;      // what to finish with when everything is written
  bool finishing_ = false;               // Finish has been called
  bool holding_ = false;                 // Finish must wait: somebody uses the context or the request
  mutable bool room_is_wanted_ = false;  // has_room() was false
  bool done_ = false;
};

}  // namespace merope::server
