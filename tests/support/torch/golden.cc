#include "tests/support/torch/golden.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tests/support/torch/hash_weights.h"

namespace merope::worker::test {

testing::AssertionResult matches(const at::Tensor& actual,
                                 const GoldenRow& expected,
                                 double tolerance,
                                 double dot_tolerance) {
  if (actual.sizes() != at::IntArrayRef(expected.shape)) {
    std::ostringstream shapes;
    shapes << "shape " << actual.sizes() << " instead of " << at::IntArrayRef(expected.shape);
    return testing::AssertionFailure() << shapes.str();
  }
  const at::Tensor flat = actual.to(at::kCPU, at::kDouble).contiguous().view({-1});
  const double* values = flat.data_ptr<double>();
  const std::int64_t n = flat.numel();
  double sum = 0;
  double sum_abs = 0;
  double dot = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += values[i];
    sum_abs += std::abs(values[i]);
    dot += values[i] * hash_value(9000, static_cast<std::uint64_t>(i));
  }
  std::ostringstream problems;
  problems.precision(8);
  const auto compare = [&](const std::string& name, double got, double want, double allowed) {
    if (!(std::abs(got - want) <= allowed)) {
      problems << name << " is " << got << " instead of " << want << " (allowed " << allowed << "); ";
    }
  };
  const double count = static_cast<double>(n);
  compare("mean", sum / count, expected.mean, tolerance);
  compare("mean_abs", sum_abs / count, expected.mean_abs, tolerance);
  compare("dot", dot, expected.dot, std::max(dot_tolerance, 1e-4 * std::abs(expected.dot)));
  for (std::int64_t i = 0; i < 4; ++i) {
    compare("first[" + std::to_string(i) + "]", values[i], expected.first[static_cast<std::size_t>(i)], tolerance);
    compare("last[" + std::to_string(i) + "]", values[n - 4 + i], expected.last[static_cast<std::size_t>(i)], tolerance);
  }
  if (problems.str().empty()) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << problems.str();
}

testing::AssertionResult near(const at::Tensor& actual, const at::Tensor& expected, double tolerance) {
  if (actual.sizes() != expected.sizes()) {
    std::ostringstream shapes;
    shapes << "shape " << actual.sizes() << " instead of " << expected.sizes();
    return testing::AssertionFailure() << shapes.str();
  }
  const at::Tensor a = actual.to(at::kCPU, at::kDouble).contiguous().view({-1});
  const at::Tensor b = expected.to(at::kCPU, at::kDouble).contiguous().view({-1});
  double worst = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data_ptr<double>()[i];
    const double y = b.data_ptr<double>()[i];
    worst = std::max(worst, std::abs(x - y));
    if (!(std::abs(x - y) <= tolerance)) {
      return testing::AssertionFailure() << "element " << i << " is " << x << " instead of " << y << " (allowed " << tolerance
                                         << ")";
    }
  }
  return testing::AssertionSuccess() << "worst difference " << worst;
}

}  // namespace merope::worker::test
