// Whether a call is taken in at all, decided from plain facts before its content is looked at.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "core/base/error.h"

namespace merope::server {

struct AdmissionFacts {
  bool draining = false;                   // the server is about to stop
  std::chrono::milliseconds time_left{0};  // until the client's deadline
  std::size_t watchers = 0;                // streaming calls now
  std::size_t max_watchers = 0;
  bool streams = false;  // the call is a streaming one
};

// A submission whose client will be gone before the queue has answered is not worth queueing.
inline constexpr std::chrono::milliseconds kLeastTimeLeft{50};

// Empty: come in. Else kUnavailable (draining), kDeadlineExceeded, or kResourceExhausted (too many streams).
std::optional<Error> refuse(const AdmissionFacts& facts);

}  // namespace merope::server
