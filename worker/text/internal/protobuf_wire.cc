#include "worker/text/internal/protobuf_wire.h"

namespace merope::worker {

std::optional<WireField> WireReader::malformed() {
  ok_ = false;
  rest_ = {};
  return std::nullopt;
}

std::optional<std::uint64_t> WireReader::varint() {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 10 && i < rest_.size(); ++i) {
    const auto byte = static_cast<unsigned char>(rest_[i]);
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << (7 * i);
    if ((byte & 0x80U) == 0) {
      rest_.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> WireReader::fixed(std::size_t bytes) {
  if (rest_.size() < bytes) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
  }
  rest_.remove_prefix(bytes);
  return value;
}

std::optional<WireField> WireReader::next() {
  if (rest_.empty()) {
    return std::nullopt;
  }
  const std::optional<std::uint64_t> tag = varint();
  if (!tag || *tag >> 3U == 0 || *tag >> 3U > 0x1FFFFFFFU) {
    return malformed();
  }
  WireField field;
  field.number = static_cast<std::uint32_t>(*tag >> 3U);
  std::optional<std::uint64_t> value;
  switch (*tag & 7U) {
    case 0: value = varint(); break;
    case 1: value = fixed(8); break;
    case 5: value = fixed(4); break;
    case 2:
      value = varint();
      field.is_bytes = true;
      if (value && *value <= rest_.size()) {
        field.bytes = rest_.substr(0, static_cast<std::size_t>(*value));
        rest_.remove_prefix(field.bytes.size());
        return field;
      }
      return malformed();
    default: return malformed();  // groups are older than any of these files
  }
  if (!value) {
    return malformed();
  }
  field.integer = *value;
  return field;
}

}  // namespace merope::worker
