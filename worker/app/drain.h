// The request to stop, as the job loop sees it: no new jobs; the running one may go on until a point in time.
#pragma once

#include <atomic>
#include <optional>

#include "core/base/clock.h"

namespace merope::worker {

// Any thread may call it.
class Drain {
 public:
  // The earliest deadline stays.
  void request(Clock::TimePoint deadline) {
    auto wanted = deadline.time_since_epoch().count();
    auto known = deadline_.load();
    while (wanted < known && !deadline_.compare_exchange_weak(known, wanted)) {
    }
  }
  std::optional<Clock::TimePoint> deadline() const {
    const auto ticks = deadline_.load();
    return ticks == kNever ? std::nullopt : std::optional(Clock::TimePoint(Clock::Duration(ticks)));
  }

 private:
  static constexpr auto kNever = Clock::Duration::max().count();
  std::atomic<Clock::Duration::rep> deadline_{kNever};
};

}  // namespace merope::worker
