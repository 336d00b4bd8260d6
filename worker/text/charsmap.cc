#include "worker/text/charsmap.h"

#include <bit>
#include <cstring>

namespace merope::worker {
namespace {

static_assert(std::endian::native == std::endian::little, "the units are stored little-endian");

constexpr std::uint32_t kValueBit = std::uint32_t{1} << 31U;

constexpr bool has_value(std::uint32_t unit) {
  return (unit >> 8U & 1U) != 0;
}
// With the value bit, which no byte has: a value's unit is never taken for a child.
constexpr std::uint32_t label(std::uint32_t unit) {
  return unit & (kValueBit | 0xFFU);
}
constexpr std::uint32_t offset(std::uint32_t unit) {
  return (unit >> 10U) << ((unit >> 9U & 1U) * 8U);
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view blob, const std::string& origin) {
  Charsmap map;
  if (blob.empty()) {
    return map;
  }
  std::uint32_t trie_bytes = 0;
  if (blob.size() >= sizeof trie_bytes) {
    std::memcpy(&trie_bytes, blob.data(), sizeof trie_bytes);
    blob.remove_prefix(sizeof trie_bytes);
  }
  if (trie_bytes == 0 || trie_bytes % sizeof(std::uint32_t) != 0 || trie_bytes >= blob.size() || blob.back() != '\0') {
    return Error{ErrorCode::kDataLoss, origin + ": the normaliser's character map is broken"};
  }
  map.units_.resize(trie_bytes / sizeof(std::uint32_t));
  std::memcpy(map.units_.data(), blob.data(), trie_bytes);
  map.replacements_ = blob.substr(trie_bytes);
  return map;
}

Charsmap::Match Charsmap::longest_match(std::string_view text) const {
  Match match;
  if (units_.empty()) {
    return match;
  }
  std::uint32_t at = offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size() || label(units_[at]) != byte) {
      break;
    }
    const std::uint32_t unit = units_[at];
    at ^= offset(unit);
    if (has_value(unit) && at < units_.size()) {
      const std::uint32_t value = units_[at] & ~kValueBit;
      if (value < replacements_.size()) {
        match = {i + 1, replacements_.data() + value};
      }
    }
  }
  return match;
}

}  // namespace merope::worker
