// Writes small spiece.model files, whole or broken.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace merope::worker::test {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) {
    bytes += static_cast<char>(value | 0x80U);
  }
  return bytes + static_cast<char>(value);
}

inline std::string integer_field(std::uint32_t number, std::int64_t value) {
  return varint(std::uint64_t{number} << 3U) + varint(static_cast<std::uint64_t>(value));
}

inline std::string bytes_field(std::uint32_t number, const std::string& bytes) {
  return varint(std::uint64_t{number} << 3U | 2U) + varint(bytes.size()) + bytes;
}

inline std::string float_field(std::uint32_t number, float value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return varint(std::uint64_t{number} << 3U | 5U) + bytes;
}

// Types: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
inline std::string piece_field(const std::string& text, float score, int type = 1) {
  return bytes_field(1, bytes_field(1, text) + float_field(2, score) + (type == 1 ? "" : integer_field(3, type)));
}

}  // namespace merope::worker::test
