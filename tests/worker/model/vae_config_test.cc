#include "worker/model/vae/vae_config.h"

#include <gtest/gtest.h>

namespace merope::worker {
namespace {

std::string numbers(int n, double value) {
  std::string text;
  for (int i = 0; i < n; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(value);
  }
  return "[" + text + "]";
}

TEST(VaeConfig, AShortFileIsWan21) {
  const Result<VaeConfig> config = parse_vae_config(R"({"_class_name": "AutoencoderKLWan", "base_dim": 96, "z_dim": 16,
      "dim_mult": [1, 2, 4, 4], "num_res_blocks": 2, "attn_scales": [], "temperal_downsample": [false, true, true],
      "dropout": 0.0})",
                                                    "vae/config.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->decoder_base_dim, 96);
  EXPECT_FALSE(config->residual);
  EXPECT_EQ(config->patch_size, 1);
  EXPECT_EQ(config->spatial_scale(), 8);
  ASSERT_EQ(config->latents_mean.size(), 16U);
  EXPECT_EQ(config->latents_mean[5], 0.9653);
  EXPECT_EQ(config->latents_std[15], 1.9160);
  EXPECT_TRUE(parse_vae_config("{}", "vae/config.json"));
}

TEST(VaeConfig, ReadsWan22) {
  const Result<VaeConfig> config = parse_vae_config(
      R"({"base_dim": 160, "decoder_base_dim": 256, "z_dim": 48, "is_residual": true, "in_channels": 12, "out_channels": 12,
          "patch_size": 2, "scale_factor_temporal": 4, "scale_factor_spatial": 16, "clip_output": false, "latents_mean": )" +
          numbers(48, 0.25) + R"(, "latents_std": )" + numbers(48, 0.5) + "}",
      "vae/config.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->residual);
  EXPECT_EQ(config->decoder_base_dim, 256);
  EXPECT_EQ(config->spatial_scale(), 16);
  EXPECT_EQ(config->patched_channels(), 12);
  EXPECT_EQ(config->latents_std, std::vector<double>(48, 0.5));
}

TEST(VaeConfig, NullIsAsGoodAsAbsent) {
  const Result<VaeConfig> config =
      parse_vae_config(R"({"base_dim": 32, "decoder_base_dim": null, "patch_size": null})", "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->decoder_base_dim, 32);
}

TEST(VaeConfig, NamesWhatItCanNotBuildOrUnderstand) {
  struct Case {
    std::string json;
    ErrorCode code;
    std::string text;
  };
  const Case cases[] = {
      {"[]", ErrorCode::kDataLoss, "vae/config.json: not a JSON object"},
      {"{", ErrorCode::kDataLoss, "not a JSON object"},
      {R"({"attn_scales": [0.5]})", ErrorCode::kUnimplemented, "attn_scales is [0.5]"},
      {R"({"temperal_downsample": [true, true, true]})", ErrorCode::kUnimplemented, "temperal_downsample"},
      {R"({"temperal_downsample": [true, true]})", ErrorCode::kDataLoss, "temperal_downsample has 2 values"},
      {R"({"temperal_downsample": "yes"})", ErrorCode::kDataLoss, "temperal_downsample is \"yes\""},
      {R"({"dim_mult": []})", ErrorCode::kDataLoss, "dim_mult is []"},
      {R"({"dim_mult": [1, 2, 0, 4]})", ErrorCode::kDataLoss, "dim_mult is [1,2,0,4]"},
      {R"({"base_dim": -3})", ErrorCode::kDataLoss, "base_dim is -3"},
      {R"({"base_dim": 96.5})", ErrorCode::kDataLoss, "base_dim is 96.5"},
      {R"({"is_residual": 1})", ErrorCode::kDataLoss, "is_residual is 1"},
      {R"({"z_dim": 48})", ErrorCode::kDataLoss, "latents_mean has 16 values, z_dim is 48"},
      {R"({"latents_std": )" + numbers(16, 0) + "}", ErrorCode::kDataLoss, "latents_std has a value that is not positive"},
      {R"({"scale_factor_spatial": 16})", ErrorCode::kDataLoss, "scale_factor_spatial is 16 but the other keys make it 8"},
      {R"({"in_channels": 12})", ErrorCode::kDataLoss, "in_channels is 12 but the other keys make it 3"},
      {R"({"is_residual": true, "dim_mult": [1, 3, 5, 5]})", ErrorCode::kDataLoss, "does not divide into its shortcut"},
      {R"({"base_dim": 1})", ErrorCode::kDataLoss, "a decoder width of 1 can not be halved"},
  };
  for (const Case& wrong : cases) {
    const Result<VaeConfig> config = parse_vae_config(wrong.json, "vae/config.json");
    ASSERT_FALSE(config) << wrong.json;
    EXPECT_EQ(config.error().code, wrong.code) << wrong.json;
    EXPECT_NE(config.error().message.find(wrong.text), std::string::npos) << config.error().message;
  }
  const Result<VaeConfig> several = parse_vae_config(R"({"base_dim": 0, "z_dim": "many"})", "f");
  ASSERT_FALSE(several);
  EXPECT_NE(several.error().message.find("base_dim"), std::string::npos);
  EXPECT_NE(several.error().message.find("z_dim"), std::string::npos);
}

}  // namespace
}  // namespace merope::worker
