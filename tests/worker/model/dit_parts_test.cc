#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/torch/golden.h"
#include "tests/support/torch/hash_weights.h"
#include "worker/model/norms.h"
#include "worker/model/patch_embed.h"
#include "worker/model/rope.h"
#include "worker/model/time_embed.h"
#include "worker/model/wan_config.h"

namespace merope::worker {
namespace {

TEST(Rope, TurnsPairsByTheTabulatedAngles) {
  // Token 17 of a 3 x 2 x 3 grid: frame 2, row 1, column 2.
  const at::Tensor table = rope_table({3, 2, 3}, 128, 1024, at::kCPU);
  const at::Tensor values = at::view_as_real(table[17]);
  const struct {
    int pair;
    double cos, sin;
  } expected[] = {{0, -0.4161468, 0.9092974},
                  {1, 0.2521776, 0.9676810},
                  {21, 0.9999999, 0.0003040},
                  {22, 0.5403023, 0.8414710},
                  {42, 1.0, 0.0001551},
                  {43, -0.4161468, 0.9092974},
                  {63, 0.9999999, 0.0003101}};
  for (const auto& e : expected) {
    EXPECT_NEAR(values[e.pair][0].item<double>(), e.cos, 1e-7) << e.pair;
    EXPECT_NEAR(values[e.pair][1].item<double>(), e.sin, 1e-7) << e.pair;
  }
}

TEST(Rope, PairsAreNeighbours) {
  const at::Tensor table = rope_table({2, 1, 1}, 6, 16, at::kCPU);  // one pair per axis, frame positions 0 and 1
  const at::Tensor x = at::arange(1, 13, at::kFloat).view({1, 2, 1, 6});
  const at::Tensor y = apply_rope(x, table).view({2, 6});
  EXPECT_TRUE(test::near(y[0], x.view({2, 6})[0], 0));
  EXPECT_NEAR(y[1][0].item<double>(), 7 * std::cos(1.0) - 8 * std::sin(1.0), 1e-6);
  EXPECT_NEAR(y[1][1].item<double>(), 7 * std::sin(1.0) + 8 * std::cos(1.0), 1e-6);
  EXPECT_TRUE(test::near(y[1].narrow(0, 2, 4), x.view({2, 6})[1].narrow(0, 2, 4), 0));
}

TEST(TimestepSinusoid, CosinesComeFirst) {
  const at::Tensor row = timestep_sinusoid(at::full({1}, 937.0, at::kFloat), 256)[0];
  const double expected[] = {0.692831, 0.153414, 0.638949, 0.460836, 0.721100, -0.988162, 0.769249, 0.887486};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(row[i].item<double>(), expected[i], 1e-4);
    EXPECT_NEAR(row[128 + i].item<double>(), expected[4 + i], 1e-4);
  }
}

TEST(Norms, EpsilonIsInsideTheRoot) {
  // Values as small as the root of eps: a wrong place or size of eps shows in the first digit.
  const at::Tensor x = at::tensor({1e-3F, -1e-3F});
  EXPECT_NEAR(layer_norm(x, 1e-6)[0].item<double>(), 1e-3 / std::sqrt(1e-6 + 1e-6), 1e-6);
  EXPECT_NEAR(rms_norm(x, at::full({2}, 3.0, at::kFloat), 1e-6)[1].item<double>(), -3e-3 / std::sqrt(1e-6 + 1e-6), 1e-6);
}

TEST(Norms, Bf16RmsNormRoundsOnce) {
  const at::Tensor x = test::hash_input(3, {64, 32}).to(at::kBFloat16);
  const at::Tensor weight = (test::hash_input(4, {32}) * 0.1 + 1).to(at::kBFloat16);
  const at::Tensor exact = rms_norm(x.to(at::kFloat), weight.to(at::kFloat), 1e-6).to(at::kBFloat16);
  EXPECT_TRUE(at::equal(rms_norm(x, weight, 1e-6), exact));
}

TEST(PatchEmbed, TokensCarryChannelsSlowestAndComeBackChannelsFastest) {
  const at::Tensor latents = at::arange(2 * 3 * 4 * 6, at::kFloat).view({1, 2, 3, 4, 6});
  const at::Tensor tokens = patchify(latents);
  ASSERT_EQ(tokens.sizes(), (at::IntArrayRef{1, 18, 8}));
  // Token (frame 1, row 1, column 2), channel 1, dy 1, dx 0.
  EXPECT_EQ(tokens[0][(1 * 2 + 1) * 3 + 2][1 * 4 + 1 * 2 + 0].item<float>(), latents[0][1][1][3][4].item<float>());
  const at::Tensor fastest = tokens.view({1, 18, 2, 4}).transpose(2, 3).reshape({1, 18, 8});
  EXPECT_TRUE(at::equal(unpatchify(fastest, token_grid(latents)), latents));
}

TEST(WanConfig, TakesDefaultsForWhatIsMissing) {
  const Result<WanConfig> config = parse_wan_config(
      R"({"_class_name": "WanTransformer3DModel", "num_layers": 30, "out_channels": null, "in_channels": 48})", "c.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->n_layers, 30);
  EXPECT_EQ(config->dim(), 5120);
  EXPECT_EQ(config->out_channels, 48);
  EXPECT_FALSE(config->camera);
}

TEST(WanConfig, ReadsTheCameraBranch) {
  const Result<WanConfig> config = parse_wan_config(
      R"({"num_attention_heads": 24, "num_layers": 30, "camera_encoding": {"name": "merope", "compression": 4, "num_heads": 6,
          "attention_head_dim": 128, "injection_blocks": [11, 13], "min_baseline_m": 0.02}})",
      "c.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->camera->width(), 768);
  EXPECT_EQ(config->camera->injection_blocks, (std::vector<int>{11, 13}));
  EXPECT_EQ(config->camera->encoding.min_baseline_m, 0.02);
  EXPECT_EQ(config->camera->encoding.partition.head_dim(), 128);

  const Result<WanConfig> shorter =
      parse_wan_config(R"({"num_attention_heads": 24, "num_layers": 6, "camera_encoding": {"compression": 4}})", "c.json");
  ASSERT_TRUE(shorter) << shorter.error().message;
  EXPECT_EQ(shorter->camera->n_heads, 6);
  EXPECT_EQ(shorter->camera->injection_blocks, (std::vector<int>{1, 3, 5}));
}

TEST(WanConfig, RefusesByName) {
  const struct {
    const char* text;
    ErrorCode code;
    const char* message;
  } cases[] = {
      {R"({"patch_size": [1, 4, 4]})", ErrorCode::kUnimplemented, "patch_size [1,4,4]"},
      {R"({"image_dim": 1280})", ErrorCode::kUnimplemented, "image_dim"},
      {R"({"qk_norm": "none"})", ErrorCode::kUnimplemented, "qk_norm \"none\""},
      {R"({"num_layers": 0})", ErrorCode::kDataLoss, "num_layers: 0"},
      {R"({"num_layers": "many"})", ErrorCode::kDataLoss, "num_layers: \"many\""},
      {R"({"attention_head_dim": 13})", ErrorCode::kDataLoss, "attention_head_dim: 13"},
      {R"({"num_layers": 2, "camera_encoding": {"compression": 40, "injection_blocks": [2]}})",
       ErrorCode::kDataLoss,
       "injection_blocks: 2"},
      {R"({"camera_encoding": {"compression": 7}})", ErrorCode::kDataLoss, "compression: 7"},
      {R"({"camera_encoding": {"compression": 4, "min_baseline": 1}})", ErrorCode::kDataLoss, "min_baseline"},
      {R"({"camera_encoding": {"compression": 8, "attention_head_dim": 80}})", ErrorCode::kDataLoss, "80"},
      {R"([1)", ErrorCode::kDataLoss, "c.json: "},
      {R"([1])", ErrorCode::kDataLoss, "not a JSON object"},
  };
  for (const auto& c : cases) {
    const Result<WanConfig> config = parse_wan_config(c.text, "c.json");
    ASSERT_FALSE(config) << c.text;
    EXPECT_EQ(config.error().code, c.code) << config.error().message;
    EXPECT_NE(config.error().message.find(c.message), std::string::npos) << config.error().message;
  }
}

}  // namespace
}  // namespace merope::worker
