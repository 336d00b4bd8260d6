// Who receives the events of a watched job.
#pragma once

#include <chrono>

#include "core/base/result.h"
#include "merope/v1/generation.pb.h"

namespace merope::client {

// Called on the thread that called Client::watch.
class EventSink {
 public:
  virtual ~EventSink() = default;

  // Every event once, in order. After Restarted everything received before is void. An error ends the watch and becomes its
  // result; the job goes on.
  virtual Status on_event(const v1::JobEvent& event) = 0;
  // The call broke for this reason and is taken up again after the pause.
  virtual void on_reattach(const Error& reason, std::chrono::milliseconds pause) {
    (void)reason;
    (void)pause;
  }
};

}  // namespace merope::client
