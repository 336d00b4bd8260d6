// How many transformers of two are in memory at a time.
#pragma once

#include <optional>
#include <string_view>

namespace merope::worker {

// kAuto: both where both fit into what is free when they are loaded. The clips are the same either way.
enum class ExpertResidency { kAuto, kBoth, kOne };

// "auto", "both", "one".
constexpr std::optional<ExpertResidency> parse_expert_residency(std::string_view text) {
  return text == "auto"   ? std::optional(ExpertResidency::kAuto)
         : text == "both" ? std::optional(ExpertResidency::kBoth)
         : text == "one"  ? std::optional(ExpertResidency::kOne)
                          : std::nullopt;
}

}  // namespace merope::worker
