#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/torch/golden.h"
#include "tests/support/torch/hash_weights.h"
#include "worker/model/vae/resample.h"
#include "worker/model/vae/vae_blocks.h"

namespace merope::worker::vae {
namespace {

// A reader of tensors given by name that must all be used.
template <typename Build>
auto build(std::map<std::string, at::Tensor> tensors, const Build& make) {
  const test::MapWeightSource source(std::move(tensors));
  WeightReader reader(source, at::kCPU, at::kFloat);
  auto part = make(reader);
  const Status status = reader.finish();
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
  return part;
}

at::Tensor value_at(const at::Tensor& x, std::initializer_list<std::int64_t> index) {
  at::Tensor value = x;
  for (const std::int64_t i : index) {
    value = value.select(0, i);
  }
  return value;
}

TEST(VaeRmsNorm, HasNoEpsInsideTheRoot) {
  const RmsNorm norm =
      build({{"n.gamma", at::full({2, 1, 1, 1}, 0.5)}}, [](WeightReader& reader) { return RmsNorm(reader, "n", 2, 3); });
  const at::Tensor tiny = at::tensor({3e-5F, 4e-5F}).view({1, 2, 1, 1, 1});
  const double root2 = std::sqrt(2.0);
  EXPECT_TRUE(test::near(norm(tiny).flatten(), at::tensor({0.6 * root2 / 2, 0.8 * root2 / 2}), 1e-6));
  EXPECT_TRUE(test::near(norm(at::zeros({1, 2, 1, 1, 1})).flatten(), at::zeros({2}), 0));
}

TEST(VaePatchify, PutsTheColumnBeforeTheRow) {
  const at::Tensor picture = at::arange(4, at::kFloat).view({1, 1, 1, 2, 2});  // rows (0 1) (2 3)
  const at::Tensor patched = patchify(picture, 2);
  EXPECT_TRUE(test::near(patched.flatten(), at::tensor({0.0F, 2.0F, 1.0F, 3.0F}), 0));
  const at::Tensor clip = test::hash_input(0, {1, 3, 2, 4, 6});
  EXPECT_TRUE(test::near(unpatchify(patchify(clip, 2), 2), clip, 0));
  EXPECT_TRUE(test::near(patchify(clip, 1), clip, 0));
}

TEST(VaeAverageDown, FirstFrameFillsTheOddChannelsOnly) {
  const at::Tensor frame = test::hash_input(1, {1, 2, 1, 2, 2});
  const at::Tensor down = average_down(frame, 4, 2, 2);
  ASSERT_EQ(down.sizes(), (at::IntArrayRef{1, 4, 1, 1, 1}));
  const at::Tensor means = frame.mean({3, 4}).flatten();
  const at::Tensor zero = at::zeros({1});
  EXPECT_TRUE(test::near(down.flatten(), at::cat({zero, means.narrow(0, 0, 1), zero, means.narrow(0, 1, 1)}), 1e-7));
}

TEST(VaeAverageDown, LaterFramesAlternateOverTheChannels) {
  const at::Tensor frames = test::hash_input(2, {1, 1, 4, 2, 2});
  const at::Tensor down = average_down(frames, 2, 2, 2);
  const at::Tensor means = frames.mean({3, 4}).flatten();  // per frame
  EXPECT_TRUE(test::near(value_at(down, {0, 0}).flatten(), means.index_select(0, at::tensor({0L, 2L})), 1e-7));
  EXPECT_TRUE(test::near(value_at(down, {0, 1}).flatten(), means.index_select(0, at::tensor({1L, 3L})), 1e-7));
}

TEST(VaeDuplicateUp, RowsComeFromNeighbouringChannelsWhenWidthsHalve) {
  const at::Tensor x = at::tensor({1.0F, 2.0F, 3.0F, 4.0F}).view({1, 4, 1, 1, 1});
  const at::Tensor up = duplicate_up(x, 2, 1, 2, /*first_chunk=*/true);
  ASSERT_EQ(up.sizes(), (at::IntArrayRef{1, 2, 1, 2, 2}));
  EXPECT_TRUE(test::near(up.flatten(), at::tensor({1.0F, 1.0F, 2.0F, 2.0F, 3.0F, 3.0F, 4.0F, 4.0F}), 0));
}

TEST(VaeDuplicateUp, FirstChunkStaysOneFrame) {
  const at::Tensor x = test::hash_input(3, {1, 2, 1, 1, 1});
  EXPECT_EQ(duplicate_up(x, 2, 2, 2, /*first_chunk=*/true).size(2), 1);
  const at::Tensor later = duplicate_up(x, 2, 2, 2, /*first_chunk=*/false);
  EXPECT_TRUE(test::near(later, x.expand({1, 2, 2, 2, 2}), 0));
}

TEST(VaeDownsample, PadsBelowAndToTheRightOnly) {
  CacheSlots slots;
  at::Tensor kernel = at::zeros({1, 1, 3, 3});
  kernel.select(2, 0).select(2, 0).fill_(1);  // picks the upper left pixel of each window
  const Downsample down = build({{"d.resample.1.weight", kernel}, {"d.resample.1.bias", at::zeros({1})}},
                                [&](WeightReader& reader) { return Downsample(reader, slots, "d", 1, false); });
  CausalCache cache(slots);
  const at::Tensor x = at::arange(16, at::kFloat).view({1, 1, 1, 4, 4});
  EXPECT_TRUE(test::near(down(x, cache).flatten(), at::tensor({0.0F, 2.0F, 8.0F, 10.0F}), 0));
}

TEST(VaeCausalConv, SeesTwoFramesBackAcrossChunksOfAnySize) {
  CacheSlots slots;
  const CausalConv3d conv = build({{"c.weight", test::hash_input(4, {3, 2, 3, 3, 3})}, {"c.bias", test::hash_input(5, {3})}},
                                  [&](WeightReader& reader) {
                                    return CausalConv3d(reader, slots, "c", 2, 3, {3, 3, 3});
                                  });
  const at::Tensor clip = test::hash_input(6, {1, 2, 8, 5, 4});
  CausalCache whole(slots);
  const at::Tensor expected = at::conv3d(
      at::constant_pad_nd(clip, {1, 1, 1, 1, 2, 0}), test::hash_input(4, {3, 2, 3, 3, 3}), test::hash_input(5, {3}));
  EXPECT_TRUE(test::near(conv(clip, whole), expected, 1e-5));
  CausalCache cache(slots);
  std::vector<at::Tensor> chunks;
  std::int64_t first = 0;
  for (const std::int64_t frames : {1, 1, 2, 1, 3}) {
    chunks.push_back(conv(clip.narrow(2, first, frames), cache));
    first += frames;
  }
  EXPECT_TRUE(test::near(at::cat(chunks, 2), expected, 1e-5));
}

}  // namespace
}  // namespace merope::worker::vae
