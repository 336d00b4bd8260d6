// Element types a safetensors file can hold.
#pragma once

#include <optional>
#include <string_view>

namespace merope::worker {

enum class Dtype {
  kBool,
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kF16,
  kBF16,
  kF32,
  kF64,
  // Known by size, so that a file with such a tensor can be checked and its other tensors read.
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E5M2Fnuz,
  kF8E4M3Fnuz,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kC64,
};

// "BF16", as the file spells it.
std::string_view to_string(Dtype dtype);
std::optional<Dtype> parse_dtype(std::string_view name);

// Bits of one element: 4 to 64.
unsigned bits_of(Dtype dtype);

}  // namespace merope::worker
