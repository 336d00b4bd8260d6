#include "worker/pipeline/noise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/torch/golden.h"

namespace merope::worker {
namespace {

TEST(SeededNoise, IsWhatPyTorchDrawsForTheSeed) {
  // torch.manual_seed(0); torch.randn(24), as any PyTorch 1.x or 2.x prints it.
  const at::Tensor expected = at::tensor({-1.1258, -1.1524, -0.2506, -0.4339, 0.8487, 0.6920, -0.3160, -2.1152});
  EXPECT_TRUE(test::near(seeded_noise({2, 3, 4}, 0).flatten().narrow(0, 0, 8), expected, 5e-5));
}

TEST(SeededNoise, DependsOnTheSeedAndNothingElse) {
  const at::Tensor first = seeded_noise({1, 4, 2, 4, 4}, 7);
  EXPECT_TRUE(at::equal(first, seeded_noise({1, 4, 2, 4, 4}, 7)));
  EXPECT_FALSE(at::equal(first, seeded_noise({1, 4, 2, 4, 4}, 8)));
}

}  // namespace
}  // namespace merope::worker
