// The protobuf wire format, as far as a tokenizer's model file needs it: fields one after the other, no schema.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace merope::worker {

// A field: its number and either an integer (varint, fixed32, fixed64) or bytes (strings and nested messages).
struct WireField {
  std::uint32_t number = 0;
  bool is_bytes = false;
  std::uint64_t integer = 0;
  std::string_view bytes;

  float as_float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(integer)); }
  // Negative numbers travel as 64-bit two's complement.
  std::int32_t as_int32() const { return static_cast<std::int32_t>(static_cast<std::int64_t>(integer)); }
};

class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  // The next field, or nothing at the end of the message or when it is malformed; ok() tells which.
  std::optional<WireField> next();
  bool ok() const { return ok_; }

 private:
  std::optional<WireField> malformed();
  std::optional<std::uint64_t> varint();
  std::optional<std::uint64_t> fixed(std::size_t bytes);

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace merope::worker
