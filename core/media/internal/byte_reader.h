// Big-endian numbers out of file bytes. Ask holds() before reading: the file may end anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace merope::media::internal {

// The caller has made sure that `bytes` reaches to offset + size of the number.
inline std::uint8_t byte_at(std::string_view bytes, std::size_t offset) {
  return static_cast<std::uint8_t>(bytes[offset]);
}

inline std::uint32_t be16(std::string_view bytes, std::size_t offset) {
  return std::uint32_t{byte_at(bytes, offset)} << 8U | byte_at(bytes, offset + 1);
}

inline std::uint32_t be32(std::string_view bytes, std::size_t offset) {
  return be16(bytes, offset) << 16U | be16(bytes, offset + 2);
}

inline std::uint64_t be64(std::string_view bytes, std::size_t offset) {
  return std::uint64_t{be32(bytes, offset)} << 32U | be32(bytes, offset + 4);
}

// Whether [offset, offset + size) lies inside; never overflows.
inline bool holds(std::string_view bytes, std::size_t offset, std::uint64_t size) {
  return offset <= bytes.size() && size <= bytes.size() - offset;
}

}  // namespace merope::media::internal
