#include "worker/model/finite.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <atomic>
#include <cstdint>

namespace merope::worker {
namespace {

// A number whose bits under the mask are all ones is NaN or infinity. Blocks of a fixed length: the compiler makes one wide
// comparison of many.
template <typename Bits>
bool any_has_all(const Bits* values, std::int64_t n, Bits mask) {
  constexpr std::int64_t kBlock = 4096 / sizeof(Bits);
  std::int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    Bits found = 0;
    for (std::int64_t j = 0; j < kBlock; ++j) {
      found |= static_cast<Bits>((values[i + j] & mask) == mask);
    }
    if (found != 0) {
      return true;
    }
  }
  for (; i < n; ++i) {
    if ((values[i] & mask) == mask) {
      return true;
    }
  }
  return false;
}

template <typename Bits>
bool all_finite(const at::Tensor& tensor, Bits mask) {
  const at::Tensor values = tensor.contiguous();
  const auto* const data = static_cast<const Bits*>(values.const_data_ptr());
  std::atomic<bool> finite = true;
  at::parallel_for(0, values.numel(), 1 << 20, [&](std::int64_t begin, std::int64_t end) {
    if (any_has_all<Bits>(data + begin, end - begin, mask)) {
      finite = false;
    }
  });
  return finite;
}

}  // namespace

bool all_finite(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble: return all_finite<std::uint64_t>(tensor, 0x7FF0'0000'0000'0000U);
    case at::kFloat: return all_finite<std::uint32_t>(tensor, 0x7F80'0000U);
    case at::kHalf: return all_finite<std::uint16_t>(tensor, 0x7C00U);
    case at::kBFloat16: return all_finite<std::uint16_t>(tensor, 0x7F80U);
    case at::kFloat8_e5m2: return all_finite<std::uint8_t>(tensor, 0x7CU);
    case at::kFloat8_e4m3fn: return all_finite<std::uint8_t>(tensor, 0x7FU);  // no infinity; NaN is all ones
    default: return true;
  }
}

}  // namespace merope::worker
