#include "server/admission.h"

#include <fmt/core.h>

namespace merope::server {

std::optional<Error> refuse(const AdmissionFacts& facts) {
  if (facts.draining) {
    return unavailable("the server is shutting down; call another one");
  }
  if (facts.time_left < kLeastTimeLeft) {
    return Error{ErrorCode::kDeadlineExceeded,
                 fmt::format("only {} ms are left of the call's deadline", facts.time_left.count())};
  }
  if (facts.streams && facts.watchers >= facts.max_watchers) {
    return Error{ErrorCode::kResourceExhausted,
                 fmt::format("{} streaming calls are open, no more are taken", facts.watchers)};
  }
  return std::nullopt;
}

}  // namespace merope::server
