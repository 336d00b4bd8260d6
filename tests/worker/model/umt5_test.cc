#include "worker/model/umt5/umt5_encoder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/torch/golden.h"
#include "tests/support/torch/hash_weights.h"

namespace merope::worker {
namespace {

using test::GoldenRow;
using test::matches;
using testing::HasSubstr;

constexpr double kTolerance = 2e-5;

// The encoder of the golden table: 17,760 parameters in 22 tensors.
Umt5Config golden_config() {
  return {.vocab_size = 64, .d_model = 32, .d_kv = 8, .d_ff = 48, .n_layers = 2, .n_heads = 3};
}

std::map<std::string, at::Tensor> golden_tensors() {
  test::Shapes shapes{{"shared.weight", {64, 32}}, {"encoder.final_layer_norm.weight", {32}}};
  for (const char* block : {"encoder.block.0.layer.", "encoder.block.1.layer."}) {
    const std::string prefix = block;
    shapes[prefix + "0.layer_norm.weight"] = {32};
    for (const char* name : {"q", "k", "v"}) {
      shapes[prefix + "0.SelfAttention." + name + ".weight"] = {24, 32};
    }
    shapes[prefix + "0.SelfAttention.o.weight"] = {32, 24};
    shapes[prefix + "0.SelfAttention.relative_attention_bias.weight"] = {32, 3};
    shapes[prefix + "1.layer_norm.weight"] = {32};
    shapes[prefix + "1.DenseReluDense.wi_0.weight"] = {48, 32};
    shapes[prefix + "1.DenseReluDense.wi_1.weight"] = {48, 32};
    shapes[prefix + "1.DenseReluDense.wo.weight"] = {32, 48};
  }
  return test::hash_weights(shapes);
}

Umt5Encoder golden_encoder(at::ScalarType dtype = at::kFloat) {
  const test::MapWeightSource source(golden_tensors());
  WeightReader reader(source, at::kCPU, dtype);
  Umt5Encoder encoder(golden_config(), reader);
  const Status status = reader.finish();
  EXPECT_TRUE(status) << status.error().message;
  return encoder;
}

const std::vector<std::int64_t> kIds{17, 5, 63, 2, 9, 33, 1, 0, 0, 0, 0, 0};
constexpr std::int64_t kReal = 7;

TEST(Umt5Encoder, MatchesTheReferenceLayerByLayer) {
  const c10::InferenceMode no_gradients;
  const Umt5Encoder encoder = golden_encoder();
  std::vector<at::Tensor> layers;
  const at::Tensor hidden = umt5_hidden_states(encoder, kIds, kReal, &layers);
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_TRUE(matches(layers[0].unsqueeze(0),
                      GoldenRow{{1, 12, 32},
                                0.075682,
                                0.916269,
                                -7.296227,
                                {-1.007625, 2.629742, -0.737318, 1.252896},
                                {0.768728, -1.351680, -0.487879, 0.437559}},
                      kTolerance));
  EXPECT_TRUE(matches(layers[1].unsqueeze(0),
                      GoldenRow{{1, 12, 32},
                                -0.041066,
                                1.097595,
                                0.032045,
                                {-0.623922, 3.956896, 0.055954, -0.038520},
                                {0.273487, -2.154894, -0.939094, 0.662036}},
                      kTolerance));
  EXPECT_TRUE(matches(hidden.unsqueeze(0),
                      GoldenRow{{1, 12, 32},
                                -0.029058,
                                0.800669,
                                0.479769,
                                {-0.407268, 2.544968, 0.036365, -0.025167},
                                {0.226729, -1.556173, -0.799138, 0.490427}},
                      kTolerance));
  EXPECT_TRUE(matches(hidden.slice(0, 0, kReal).unsqueeze(0),
                      GoldenRow{{1, 7, 32},
                                0.028191,
                                0.803977,
                                -8.448258,
                                {-0.407268, 2.544968, 0.036365, -0.025167},
                                {1.209430, -0.229025, -2.057269, 0.607635}},
                      kTolerance));
}

TEST(Umt5Encoder, PromptEmbedsAreZeroBehindTheRealTokens) {
  const c10::InferenceMode no_gradients;
  const at::Tensor embeds = umt5_prompt_embeds(golden_encoder(), kIds, kReal);
  EXPECT_TRUE(matches(
      embeds,
      GoldenRow{{1, 12, 32}, 0.016445, 0.468987, -8.448258, {-0.407268, 2.544968, 0.036365, -0.025167}, {0, 0, 0, 0}},
      kTolerance));
  EXPECT_EQ(embeds.slice(1, kReal).abs().max().item<float>(), 0.0F);
}

TEST(Umt5Encoder, RealTokensDoNotSeeThePadding) {
  const c10::InferenceMode no_gradients;
  const Umt5Encoder encoder = golden_encoder();
  std::vector<std::int64_t> padded = kIds;
  padded.resize(64, 3);
  const at::Tensor alone = umt5_hidden_states(encoder, std::span(kIds).first(kReal), kReal);
  EXPECT_TRUE(test::near(umt5_hidden_states(encoder, padded, kReal).slice(0, 0, kReal), alone, 1e-5));
}

TEST(Umt5Encoder, Bfloat16StaysCloseToFloat32) {
  const c10::InferenceMode no_gradients;
  const at::Tensor wide = umt5_prompt_embeds(golden_encoder(), kIds, kReal);
  const at::Tensor narrow = umt5_prompt_embeds(golden_encoder(at::kBFloat16), kIds, kReal);
  EXPECT_EQ(narrow.scalar_type(), at::kBFloat16);
  const double ratio = ((narrow.to(at::kFloat) - wide).square().mean() / wide.square().mean()).sqrt().item<double>();
  EXPECT_LT(ratio, 0.02);
}

TEST(Umt5Encoder, TheEmbeddingMayHaveItsOtherName) {
  const c10::InferenceMode no_gradients;
  std::map<std::string, at::Tensor> tensors = golden_tensors();
  const at::Tensor expected = umt5_prompt_embeds(golden_encoder(), kIds, kReal);
  tensors["encoder.embed_tokens.weight"] = tensors["shared.weight"];
  for (const bool both : {true, false}) {
    if (!both) {
      tensors.erase("shared.weight");
    }
    const test::MapWeightSource source(tensors);
    WeightReader reader(source, at::kCPU, at::kFloat);
    const Umt5Encoder encoder(golden_config(), reader);
    const Status status = reader.finish();
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_TRUE(test::near(umt5_prompt_embeds(encoder, kIds, kReal), expected, 0));
  }
}

TEST(Umt5Encoder, RefusesWhatItCannotCompute) {
  const Umt5Encoder encoder = golden_encoder();
  EXPECT_THROW(umt5_hidden_states(encoder, std::vector<std::int64_t>{64, 1}, 2), std::invalid_argument);
  EXPECT_THROW(umt5_hidden_states(encoder, std::vector<std::int64_t>{-1, 1}, 2), std::invalid_argument);
  EXPECT_THROW(umt5_hidden_states(encoder, std::vector<std::int64_t>{1}, 2), std::invalid_argument);
  EXPECT_THROW(umt5_hidden_states(encoder, std::vector<std::int64_t>{1}, 0), std::invalid_argument);
  const test::MapWeightSource source(golden_tensors());
  WeightReader reader(source, at::kCPU, at::kHalf);
  EXPECT_THROW(Umt5Encoder(golden_config(), reader), std::invalid_argument);
}

TEST(Umt5PositionBucket, EveryDistanceHasTheReferencesBucket) {
  const auto bucket = [](std::int64_t distance) { return umt5_position_bucket(distance, 32, 128); };
  const std::vector<std::int64_t> first_distance{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91};
  for (std::int64_t distance = 0; distance < 512; ++distance) {
    const auto next = std::ranges::upper_bound(first_distance, distance);
    const std::int64_t expected = next - first_distance.begin() - 1;
    EXPECT_EQ(bucket(-distance), expected) << -distance;
    if (distance > 0) {
      EXPECT_EQ(bucket(distance), expected + 16) << distance;
    }
  }
}

TEST(Umt5Config, ReadsWhatIsThereAndTakesTheClassDefaultsForTheRest) {
  const auto config = Umt5Config::parse(
      R"({"model_type":"umt5","vocab_size":256384,"d_model":4096,"d_ff":10240,"num_layers":24,"num_heads":64,)"
      R"("layer_norm_epsilon":1e-05,"feed_forward_proj":"gated-gelu","dense_act_fn":"gelu_new","torch_dtype":"bfloat16"})",
      "config.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->vocab_size, 256384);
  EXPECT_EQ(config->d_model, 4096);
  EXPECT_EQ(config->d_kv, 64);
  EXPECT_EQ(config->d_ff, 10240);
  EXPECT_EQ(config->n_layers, 24);
  EXPECT_EQ(config->n_heads, 64);
  EXPECT_EQ(config->n_buckets, 32);
  EXPECT_EQ(config->max_distance, 128);
  EXPECT_EQ(config->eps, 1e-5);
}

TEST(Umt5Config, RefusesOtherArchitecturesByKeyAndValue) {
  for (const auto& [json, text] : {std::pair{R"({"model_type":"t5"})", "model_type is \"t5\""},
                                   {R"({"feed_forward_proj":"relu"})", "feed_forward_proj is \"relu\""},
                                   {R"({"dense_act_fn":"silu"})", "dense_act_fn is \"silu\""},
                                   {R"({"is_gated_act":false})", "is_gated_act is false"}}) {
    const auto config = Umt5Config::parse(json, "text_encoder/config.json");
    ASSERT_FALSE(config) << json;
    EXPECT_EQ(config.error().code, ErrorCode::kUnimplemented);
    EXPECT_THAT(config.error().message, HasSubstr(std::string("text_encoder/config.json: ") + text));
  }
}

TEST(Umt5Config, RefusesValuesThatAreNoSizes) {
  for (const char* json : {"",
                           "[]",
                           "{",
                           R"({"d_model":0})",
                           R"({"num_layers":-1})",
                           R"({"d_ff":1.5})",
                           R"({"num_heads":"6"})",
                           R"({"layer_norm_epsilon":0})",
                           R"({"relative_attention_num_buckets":6})",
                           R"({"relative_attention_max_distance":8})",
                           R"({"vocab_size":99999999999})"}) {
    const auto config = Umt5Config::parse(json, "config.json");
    ASSERT_FALSE(config) << json;
    EXPECT_EQ(config.error().code, ErrorCode::kDataLoss) << json;
  }
}

}  // namespace
}  // namespace merope::worker
