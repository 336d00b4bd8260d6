#include "worker/model/finite.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

namespace merope::worker {
namespace {

TEST(AllFinite, SeesNanAndInfinityAtEveryPlaceInEveryDtype) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const at::ScalarType dtype :
       {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kFloat8_e5m2, at::kFloat8_e4m3fn}) {
    for (const std::int64_t n : {1, 7, 511, 1024, 5000}) {
      const at::Tensor good = at::linspace(-300, 300, n, at::kFloat);
      EXPECT_TRUE(all_finite(good.to(dtype))) << dtype << " " << n;
      for (const std::int64_t at_index : {std::int64_t{0}, n / 2, n - 1}) {
        for (const double value : {kInf, -kInf, std::numeric_limits<double>::quiet_NaN()}) {
          if (dtype == at::kFloat8_e4m3fn && value == value) {
            continue;  // it has no infinity
          }
          at::Tensor bad = good.clone();
          bad[at_index] = value;
          EXPECT_FALSE(all_finite(bad.to(dtype))) << dtype << " " << n << " " << at_index << " " << value;
        }
      }
    }
  }
}

TEST(AllFinite, LargestNumbersAndStridesAreFine) {
  EXPECT_TRUE(all_finite(at::full({3}, std::numeric_limits<float>::max())));
  at::Tensor table = at::zeros({4, 2});
  table.select(1, 1).fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(all_finite(table.select(1, 0)));
  EXPECT_FALSE(all_finite(table.select(1, 1)));
  EXPECT_TRUE(all_finite(at::empty({0})));
  EXPECT_TRUE(all_finite(at::ones({2}, at::kInt)));
}

}  // namespace
}  // namespace merope::worker
