// The end of a job's event stream as the fan-out sees it: one streaming call, without gRPC.
#pragma once

#include <optional>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "merope/v1/generation.pb.h"

namespace merope::server {

// Any thread may call it. After end() everything else is ignored.
class EventReceiver {
 public:
  virtual ~EventReceiver() = default;

  // Whether the next events may be fetched: what was handed over before has been written, up to a small rest.
  virtual bool has_room() const = 0;
  virtual void event(v1::JobEvent event) = 0;
  // No more events: empty for a stream that is complete, else the error of the call.
  virtual void end(std::optional<Error> error) = 0;
  // Since when the client has not taken what is being written; empty when nothing waits.
  virtual std::optional<Clock::TimePoint> stalled_since() const = 0;
  // Breaks the call off at once, whatever still waits to be written.
  virtual void abort() = 0;
  // The call is over and gone.
  virtual bool closed() const = 0;
};

}  // namespace merope::server
