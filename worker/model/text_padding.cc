#include "worker/model/text_padding.h"

#include <cmath>

#include "core/base/check.h"

namespace merope::worker {
namespace {

// Bits of the significand, the hidden one included.
int significand_bits(at::ScalarType dtype) {
  switch (dtype) {
    case at::kBFloat16: return 8;
    case at::kHalf: return 11;
    default: return 24;
  }
}

// The largest number with so many bits that is not above x.
double rounded_down(double x, int bits) {
  int exponent = 0;
  std::frexp(x, &exponent);
  const double unit = std::ldexp(1.0, exponent - bits);
  return std::floor(x / unit) * unit;
}

}  // namespace

std::vector<double> padding_biases(std::int64_t count, at::ScalarType dtype) {
  MEROPE_CHECK(count >= 1, "there is padding");
  constexpr double kNegligible = 1e-6;
  const int bits = significand_bits(dtype);
  const auto whole = static_cast<double>(count);
  std::vector<double> biases;
  for (double missing = whole; missing > kNegligible * whole; missing -= std::exp(biases.back())) {
    biases.push_back(rounded_down(std::log(missing), bits));
  }
  return biases;
}

}  // namespace merope::worker
