#include "core/base/ids.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>

namespace merope {

std::string random_id(std::string_view prefix) {
  thread_local std::random_device device;
  std::string id(prefix);
  id += '-';
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int word = 0; word < 4; ++word) {
    std::uint32_t bits = device();
    for (int digit = 0; digit < 8; ++digit) {
      id += kDigits[bits & 15U];
      bits >>= 4U;
    }
  }
  return id;
}

bool is_valid_id(std::string_view id) {
  constexpr std::size_t kMaxLength = 128;
  return !id.empty() && id.size() <= kMaxLength && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace merope
