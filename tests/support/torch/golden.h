// One row of a golden table, and the check of a tensor against it.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace merope::worker::test {

// As the tables print it: mean, mean of absolute values, sum of value[i] * u(9000, i) over the row-major flattening, and the
// first and last four values.
struct GoldenRow {
  std::vector<std::int64_t> shape;
  double mean = 0;
  double mean_abs = 0;
  double dot = 0;
  std::array<double, 4> first{};
  std::array<double, 4> last{};
};

// A row and what a probe calls the tensor.
struct NamedGolden {
  const char* name;
  GoldenRow row;
};

// Compares in double precision: shape exactly; mean, mean_abs and the eight values to `tolerance` (absolute); dot to
// `dot_tolerance`, or 1e-4 relative if that is larger. Prints every figure that is off with both values.
testing::AssertionResult matches(const at::Tensor& actual,
                                 const GoldenRow& expected,
                                 double tolerance,
                                 double dot_tolerance = 1e-3);

// Largest absolute difference of two tensors of one shape; prints the first bad index and both values.
testing::AssertionResult near(const at::Tensor& actual, const at::Tensor& expected, double tolerance);

}  // namespace merope::worker::test
