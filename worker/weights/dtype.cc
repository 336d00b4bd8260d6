#include "worker/weights/dtype.h"

#include <algorithm>
#include <array>

#include "core/base/check.h"

namespace merope::worker {
namespace {

struct Row {
  Dtype dtype;
  std::string_view name;
  unsigned bits;
};

constexpr std::array<Row, 22> kRows{{
    {Dtype::kBool, "BOOL", 8},
    {Dtype::kU8, "U8", 8},
    {Dtype::kI8, "I8", 8},
    {Dtype::kU16, "U16", 16},
    {Dtype::kI16, "I16", 16},
    {Dtype::kU32, "U32", 32},
    {Dtype::kI32, "I32", 32},
    {Dtype::kU64, "U64", 64},
    {Dtype::kI64, "I64", 64},
    {Dtype::kF16, "F16", 16},
    {Dtype::kBF16, "BF16", 16},
    {Dtype::kF32, "F32", 32},
    {Dtype::kF64, "F64", 64},
    {Dtype::kF8E5M2, "F8_E5M2", 8},
    {Dtype::kF8E4M3, "F8_E4M3", 8},
    {Dtype::kF8E8M0, "F8_E8M0", 8},
    {Dtype::kF8E5M2Fnuz, "F8_E5M2FNUZ", 8},
    {Dtype::kF8E4M3Fnuz, "F8_E4M3FNUZ", 8},
    {Dtype::kF4, "F4", 4},
    {Dtype::kF6E2M3, "F6_E2M3", 6},
    {Dtype::kF6E3M2, "F6_E3M2", 6},
    {Dtype::kC64, "C64", 64},
}};

const Row& row_of(Dtype dtype) {
  const auto* const row = std::ranges::find(kRows, dtype, &Row::dtype);
  MEROPE_CHECK(row != kRows.end(), "a dtype without a row in the table");
  return *row;
}

}  // namespace

std::string_view to_string(Dtype dtype) {
  return row_of(dtype).name;
}

std::optional<Dtype> parse_dtype(std::string_view name) {
  const auto* const row = std::ranges::find(kRows, name, &Row::name);
  return row == kRows.end() ? std::nullopt : std::optional(row->dtype);
}

unsigned bits_of(Dtype dtype) {
  return row_of(dtype).bits;
}

}  // namespace merope::worker
