#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/torch/golden.h"
#include "tests/support/torch/hash_weights.h"
#include "tests/support/torch/vae_shapes.h"
#include "tests/worker/model/vae_whole_clip.h"
#include "worker/model/vae/wan_vae.h"

namespace merope::worker {
namespace {

struct Kind {
  const char* name;
  VaeConfig config;
};

void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}

class VaeStream : public testing::TestWithParam<Kind> {
 protected:
  VaeStream() : weights_(test::hash_weights(test::vae_shapes(config()))), source_(weights_) {}

  const VaeConfig& config() const { return GetParam().config; }
  WanVae model(at::ScalarType dtype = at::kFloat) const {
    Result<WanVae> loaded = WanVae::load(config(), source_, at::kCPU, dtype);
    EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().message);
    return *std::move(loaded);
  }
  test::WholeClipVae oracle() const { return {config(), weights_}; }

  at::Tensor video(std::int64_t frames) const {
    return test::hash_input(2, {1, 3, frames, 2 * config().spatial_scale(), 3 * config().spatial_scale()});
  }
  at::Tensor latents(std::int64_t frames) const { return test::hash_input(3, {1, config().z_dim, frames, 2, 3}); }

  std::map<std::string, at::Tensor> weights_;
  test::MapWeightSource source_;
};

TEST_P(VaeStream, EncodesAsIfTheClipWereSeenAtOnce) {
  const WanVae vae = model();
  const at::Tensor clip = video(13);
  const at::Tensor mean = oracle().moments(clip).narrow(1, 0, config().z_dim);
  EXPECT_TRUE(test::near(vae.denormalise(vae.encode(clip)), mean, 1e-5));
}

TEST_P(VaeStream, DecodesAsIfTheClipWereSeenAtOnce) {
  const WanVae vae = model();
  const at::Tensor z = latents(5);
  EXPECT_TRUE(test::near(vae.decode(vae.normalise(z)), oracle().decode(z), 1e-5));
}

TEST_P(VaeStream, LaterFramesNeverChangeEarlierOnes) {
  const WanVae vae = model();
  at::Tensor clip = video(9);
  const at::Tensor before = vae.encode(clip);
  clip.narrow(2, 5, 4).neg_();
  const at::Tensor after = vae.encode(clip);
  EXPECT_TRUE(at::equal(before.narrow(2, 0, 2), after.narrow(2, 0, 2)));
  EXPECT_FALSE(at::equal(before.narrow(2, 2, 1), after.narrow(2, 2, 1)));
  EXPECT_TRUE(at::equal(vae.encode(clip.narrow(2, 0, 5)), after.narrow(2, 0, 2)));

  at::Tensor z = latents(4);
  const at::Tensor frames = vae.decode(z);
  z.narrow(2, 2, 2).neg_();
  const at::Tensor changed = vae.decode(z);
  EXPECT_TRUE(at::equal(frames.narrow(2, 0, 5), changed.narrow(2, 0, 5)));
  EXPECT_FALSE(at::equal(frames.narrow(2, 5, 4), changed.narrow(2, 5, 4)));
  EXPECT_TRUE(at::equal(vae.decode(z.narrow(2, 0, 2)), frames.narrow(2, 0, 5)));
}

TEST_P(VaeStream, MemoryDoesNotGrowWithTheClip) {
  const WanVae vae = model();
  StreamingVaeDecoder decoder(vae);
  const at::Tensor z = latents(6);
  std::vector<std::int64_t> bytes;
  for (std::int64_t i = 0; i < 6; ++i) {
    const at::Tensor frames = decoder.decode_latent_frame(z.narrow(2, i, 1));
    EXPECT_EQ(frames.size(2), i == 0 ? 1 : 4);
    bytes.push_back(decoder.cache_bytes());
  }
  EXPECT_GT(bytes[1], 0);
  EXPECT_EQ(bytes[2], bytes[1]);
  EXPECT_EQ(bytes[5], bytes[1]);
  decoder.begin();
  EXPECT_EQ(decoder.cache_bytes(), 0);
}

TEST_P(VaeStream, TilesKeepTheSizeAndTheMemoryOfTheirOwn) {
  const WanVae vae = model();
  const at::Tensor z = test::hash_input(3, {1, config().z_dim, 3, 5, 7});
  const at::Tensor whole = vae.decode(z);
  EXPECT_TRUE(at::equal(vae.decode(z, VaeTiling{.size = 7, .stride = 4}), whole));  // one tile is no tiling
  const VaeTiling tiling{.size = 4, .stride = 3};
  StreamingVaeDecoder decoder(vae, tiling);
  std::vector<std::int64_t> bytes;
  for (std::int64_t i = 0; i < 3; ++i) {
    const at::Tensor frames = decoder.decode_latent_frame(z.narrow(2, i, 1));
    EXPECT_EQ(frames.size(3), whole.size(3));
    EXPECT_EQ(frames.size(4), whole.size(4));
    bytes.push_back(decoder.cache_bytes());
  }
  EXPECT_EQ(bytes[2], bytes[1]);
  const at::Tensor video = test::hash_input(2, {1, 3, 5, 5 * config().spatial_scale(), 7 * config().spatial_scale()});
  EXPECT_EQ(vae.encode(video, tiling).sizes(), vae.encode(video).sizes());
}

TEST_P(VaeStream, BeginForgetsTheClip) {
  const WanVae vae = model();
  StreamingVaeDecoder decoder(vae);
  const at::Tensor z = latents(2);
  const at::Tensor first = decoder.decode_latent_frame(z.narrow(2, 0, 1));
  decoder.decode_latent_frame(z.narrow(2, 1, 1));
  decoder.begin();
  EXPECT_TRUE(at::equal(decoder.decode_latent_frame(z.narrow(2, 0, 1)), first));
}

TEST_P(VaeStream, NormalisedLatentsAreTheMeanScaledPerChannel) {
  const WanVae vae = model();
  const at::Tensor z = latents(2);
  const at::Tensor scaled = vae.normalise(z);
  const std::size_t last = static_cast<std::size_t>(config().z_dim) - 1;
  EXPECT_NEAR(scaled[0][static_cast<std::int64_t>(last)][1][1][2].item<double>(),
              (z[0][static_cast<std::int64_t>(last)][1][1][2].item<double>() - config().latents_mean[last]) /
                  config().latents_std[last],
              1e-6);
  EXPECT_TRUE(test::near(vae.denormalise(scaled), z, 1e-6));
}

TEST_P(VaeStream, Bf16StaysCloseToFp32) {
  const at::Tensor z = latents(3);
  const WanVae vae = model();
  const at::Tensor exact = vae.decode(vae.normalise(z));
  const at::Tensor rough = model(at::kBFloat16).decode(vae.normalise(z));
  EXPECT_EQ(rough.scalar_type(), at::kFloat);
  const double ratio = ((rough - exact).norm() / exact.norm()).item<double>();
  EXPECT_LT(ratio, 0.03);
  EXPECT_GT(ratio, 1e-4);  // it did run in bf16
}

TEST_P(VaeStream, GradientsReachTheLatents) {
  const WanVae vae = model();
  const at::Tensor z = latents(2).clone().requires_grad_(true);
  const at::Tensor weights = test::hash_input(7, {1, 3, 5, 2 * config().spatial_scale(), 3 * config().spatial_scale()});
  (vae.decode(z) * weights).sum().backward();
  ASSERT_TRUE(z.grad().defined());
  const at::Tensor direction = z.grad() / z.grad().norm();
  const double step = 1e-2;
  const auto value = [&](double along) {
    return (vae.decode(z.detach() + direction * along) * weights).sum(at::kDouble).item<double>();
  };
  const double slope = (value(step) - value(-step)) / (2 * step);
  EXPECT_NEAR(slope, z.grad().norm().item<double>(), 0.02 * slope);
}

TEST_P(VaeStream, RefusesShapesThatAreNoNextChunk) {
  const WanVae vae = model();
  EXPECT_THROW(vae.encode(video(8)), c10::Error);
  EXPECT_THROW(vae.encode(test::hash_input(2, {1, 3, 1, 2 * config().spatial_scale(), 20})), c10::Error);
  EXPECT_THROW(vae.decode(test::hash_input(2, {1, 5, 1, 2, 2})), c10::Error);
  StreamingVaeEncoder encoder(vae);
  EXPECT_THROW(encoder.encode_frames(video(4)), c10::Error);
  encoder.encode_frames(video(1));
  EXPECT_THROW(encoder.encode_frames(video(1)), c10::Error);
  StreamingVaeDecoder decoder(vae);
  EXPECT_THROW(decoder.decode_latent_frame(latents(2)), c10::Error);
  decoder.decode_latent_frame(latents(1));
  EXPECT_THROW(decoder.decode_latent_frame(test::hash_input(3, {1, config().z_dim, 1, 3, 3})), c10::Error);
  EXPECT_THROW(vae.decode(latents(1), VaeTiling{.size = 2, .stride = 3}), c10::Error);
}

TEST_P(VaeStream, LoadNamesMissingAndSuperfluousTensors) {
  auto weights = weights_;
  weights.erase("decoder.conv_out.bias");
  weights.emplace("decoder.conv_out.offset", at::ones({3}));
  const Result<WanVae> vae = WanVae::load(config(), test::MapWeightSource(weights), at::kCPU, at::kFloat);
  ASSERT_FALSE(vae);
  EXPECT_EQ(vae.error().code, ErrorCode::kDataLoss);
  EXPECT_NE(vae.error().message.find("decoder.conv_out.bias is missing"), std::string::npos) << vae.error().message;
  EXPECT_NE(vae.error().message.find("decoder.conv_out.offset is unexpected"), std::string::npos) << vae.error().message;
}

// Two residual blocks per stage, as the published models have.
VaeConfig two_blocks(VaeConfig config) {
  config.num_res_blocks = 2;
  return config;
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         VaeStream,
                         testing::Values(Kind{"Plain", test::vae_config_v21()},
                                         Kind{"Residual", test::vae_config_v22()},
                                         Kind{"ResidualTwoBlocks", two_blocks(test::vae_config_v22())}),
                         [](const auto& kind) { return std::string(kind.param.name); });

// The published prefix pixels of a 9-frame and a 1-frame conditioning.
TEST(VaePrefix, NormalisedLatentsAgreeWithAnotherImplementation) {
  const VaeConfig config = test::vae_config_v22();
  const test::MapWeightSource source(test::hash_weights(test::vae_shapes(config)));
  const WanVae vae = *WanVae::load(config, source, at::kCPU, at::kFloat);
  EXPECT_TRUE(test::matches(vae.encode(test::hash_input(20, {1, 3, 1, 64, 96})),
                            {{1, 48, 1, 4, 6},
                             0.004935,
                             0.319036,
                             -9.629999,
                             {1.459424, 2.447709, 1.499605, 1.472628},
                             {-0.134263, -0.479507, 0.046403, -0.250474}},
                            2e-5));
  EXPECT_TRUE(test::matches(vae.encode(test::hash_input(20, {1, 3, 9, 64, 96})),
                            {{1, 48, 3, 4, 6},
                             0.009878,
                             0.434847,
                             19.055899,
                             {1.244495, 1.235265, 0.761645, 0.516689},
                             {0.002377, 0.149281, -0.462838, -0.130803}},
                            2e-5));
}

}  // namespace
}  // namespace merope::worker
