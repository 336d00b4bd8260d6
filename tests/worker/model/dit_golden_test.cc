#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/torch/dit_shapes.h"
#include "tests/support/torch/golden.h"
#include "tests/support/torch/hash_weights.h"
#include "tests/worker/model/dit_goldens.h"
#include "worker/model/text_padding.h"
#include "worker/model/wan_dit.h"

namespace merope::worker {
namespace {

// Half of what the mildest real mistake (the wrong GELU) changes in an output of this size.
constexpr double kTolerance = 1e-4;

WanDit hash_dit(const WanConfig& config, at::ScalarType dtype = at::kFloat) {
  const test::MapWeightSource source(test::hash_weights(test::dit_shapes(config)));
  Result<WanDit> model = WanDit::load(config, source, at::kCPU, dtype);
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  return *std::move(model);
}

std::int64_t n_parameters(const test::Shapes& shapes) {
  std::int64_t total = 0;
  for (const auto& [name, shape] : shapes) {
    total += c10::multiply_integers(shape);
  }
  return total;
}

struct Run {
  at::Tensor output;
  std::map<std::string, at::Tensor> seen;
};

struct Timesteps {
  at::Tensor values;       // [n]
  at::Tensor token_index;  // of NoiseLevel
};

Run run(const WanDit& model, const at::Tensor& latents, const Timesteps& timesteps, const at::Tensor& text) {
  Run result;
  const ProbeFunction remember = [&](const std::string& name, const at::Tensor& value) { result.seen[name] = value; };
  const Probe probe(remember);
  const TextContext context = model.encode_text(text, text.size(1), probe);
  const NoiseLevel noise{model.embed_timesteps(timesteps.values, probe), timesteps.token_index};
  result.output = model.forward(latents, noise, context, model.rope(token_grid(latents)), nullptr, probe);
  result.seen["output"] = result.output;
  if (noise.token_index.defined()) {
    for (const char* name : {"time.embedding", "time.projection"}) {
      result.seen[name] = per_token(result.seen[name], noise.token_index);
    }
    result.seen["time.sinusoid"] = per_token(result.seen["time.sinusoid"], noise.token_index).squeeze(0);
  }
  return result;
}

void expect_goldens(const Run& result, const std::vector<test::NamedGolden>& goldens) {
  for (const test::NamedGolden& golden : goldens) {
    const auto it = result.seen.find(golden.name);
    ASSERT_NE(it, result.seen.end()) << golden.name;
    EXPECT_TRUE(test::matches(it->second, golden.row, kTolerance)) << golden.name;
  }
}

Timesteps one_timestep(double t) {
  return {at::full({1}, t, at::kFloat), {}};
}

// 0 for the first n_clean tokens, t for the rest.
Timesteps prefix_timesteps(double t, std::int64_t n_clean, std::int64_t n_tokens) {
  const at::Tensor index = (at::arange(n_tokens, at::kLong) >= n_clean).to(at::kLong);
  return {at::tensor({0.0F, static_cast<float>(t)}), index};
}

double rms_ratio(const at::Tensor& a, const at::Tensor& b) {
  return ((a.to(at::kDouble) - b.to(at::kDouble)).square().mean().sqrt() / b.to(at::kDouble).square().mean().sqrt())
      .item<double>();
}

TEST(DitGolden, CountsItsTensorsAndParameters) {
  const test::Shapes d1 = test::dit_shapes(test::dit_config_d1());
  EXPECT_EQ(d1.size(), 69U);
  EXPECT_EQ(n_parameters(d1), 25592);
  EXPECT_EQ(n_parameters(test::dit_shapes(test::dit_config_d2())), 56352);

  WanConfig ti2v_5b;
  ti2v_5b.n_heads = 24;
  ti2v_5b.in_channels = ti2v_5b.out_channels = 48;
  ti2v_5b.ffn_dim = 14336;
  ti2v_5b.n_layers = 30;
  const test::Shapes shapes = test::dit_shapes(ti2v_5b);
  EXPECT_EQ(shapes.size(), 825U);
  EXPECT_EQ(n_parameters(shapes), 4999787712);
}

TEST(DitGolden, EveryActivationWithOneTimestepD1) {
  const WanDit model = hash_dit(test::dit_config_d1());
  expect_goldens(run(model, test::hash_input(0, {1, 4, 2, 16, 16}), one_timestep(750), test::hash_input(1, {1, 12, 16})),
                 test::kDitD1);
}

TEST(DitGolden, EveryActivationWithACleanFirstFrameD2) {
  const WanDit model = hash_dit(test::dit_config_d2());
  expect_goldens(
      run(model, test::hash_input(0, {1, 48, 3, 4, 6}), prefix_timesteps(937, 6, 18), test::hash_input(1, {1, 16, 32})),
      test::kDitD2a);
}

TEST(DitGolden, EveryActivationWithOneTimestepD2) {
  const WanDit model = hash_dit(test::dit_config_d2());
  expect_goldens(run(model, test::hash_input(0, {1, 48, 3, 4, 6}), one_timestep(937), test::hash_input(1, {1, 16, 32})),
                 test::kDitD2b);
}

TEST(DitGolden, Bf16StaysWithinItsRoundingOfFp32) {
  const at::Tensor latents = test::hash_input(0, {1, 48, 3, 4, 6});
  const at::Tensor text = test::hash_input(1, {1, 16, 32});
  const at::Tensor wide = run(hash_dit(test::dit_config_d2()), latents, prefix_timesteps(937, 6, 18), text).output;
  const at::Tensor narrow =
      run(hash_dit(test::dit_config_d2(), at::kBFloat16), latents, prefix_timesteps(937, 6, 18), text).output;
  EXPECT_EQ(narrow.scalar_type(), at::kBFloat16);
  EXPECT_LT(rms_ratio(narrow, wide), 0.02);
  EXPECT_GT(rms_ratio(narrow, wide), 1e-4);  // it did compute in bf16
}

TEST(PaddingBiases, CountEveryRowExactly) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (std::int64_t count = 1; count <= 600; ++count) {
      const std::vector<double> biases = padding_biases(count, dtype);
      EXPECT_LE(biases.size(), dtype == at::kFloat ? 1U : 4U) << count;
      const at::Tensor exact = at::tensor(biases, at::kDouble);
      EXPECT_TRUE(at::equal(exact.to(dtype).to(at::kDouble), exact)) << count << " in " << at::toString(dtype);
      EXPECT_NEAR(exact.exp().sum().item<double>(), static_cast<double>(count), 1e-6 * static_cast<double>(count));
    }
  }
}

TEST(WanDit, FewPaddingRowsStandForAllOfThem) {
  const at::Tensor latents = test::hash_input(0, {1, 48, 3, 4, 6});
  const at::Tensor states = test::hash_input(1, {1, 5, 32});
  const auto velocity = [&](const WanDit& model, const at::Tensor& rows, std::int64_t length) {
    const NoiseLevel noise{model.embed_timesteps(at::full({1}, 937.0F)), {}};
    return model.forward(latents, noise, model.encode_text(rows, length), model.rope(token_grid(latents)), nullptr);
  };
  const at::Tensor padded = at::constant_pad_nd(states, {0, 0, 0, 507});
  const WanDit wide = hash_dit(test::dit_config_d2());
  const at::Tensor plain = velocity(wide, padded, 512);
  EXPECT_TRUE(test::near(velocity(wide, states, 512), plain, 2e-5));
  EXPECT_FALSE(test::near(velocity(wide, states, 5), plain, 1e-2));  // padding matters
  EXPECT_EQ(wide.encode_text(states, 512).blocks[0].k.size(1), 6);

  // In bf16 the folded rows are no farther from the truth than the rows one by one.
  const WanDit narrow = hash_dit(test::dit_config_d2(), at::kBFloat16);
  EXPECT_LT(rms_ratio(velocity(narrow, states, 512), plain), 1.1 * rms_ratio(velocity(narrow, padded, 512), plain));
  EXPECT_LE(narrow.encode_text(states, 512).blocks[0].k.size(1), 9);
}

TEST(WanDit, PromptsOfABatchMayDifferInLength) {
  const WanDit model = hash_dit(test::dit_config_d2());
  const at::Tensor latents = test::hash_input(0, {1, 48, 3, 4, 6});
  const NoiseLevel noise{model.embed_timesteps(at::full({1}, 937.0F)), {}};
  const at::Tensor rope = model.rope(token_grid(latents));
  const at::Tensor longer = test::hash_input(1, {1, 9, 32});
  const at::Tensor shorter = test::hash_input(2, {1, 2, 32});
  const TextContext both = model.encode_text(at::cat({longer, at::constant_pad_nd(shorter, {0, 0, 0, 7})}), 64);
  const at::Tensor together = model.forward(latents.expand({2, -1, -1, -1, -1}), noise, both, rope, nullptr);
  const at::Tensor states[] = {longer, shorter};
  for (int i = 0; i < 2; ++i) {
    const at::Tensor alone = model.forward(latents, noise, model.encode_text(states[i], 64), rope, nullptr);
    EXPECT_TRUE(test::near(together.narrow(0, i, 1), alone, 2e-5)) << i;
    EXPECT_TRUE(test::near(model.forward(latents, noise, both.prompt(i), rope, nullptr), alone, 2e-5)) << i;
  }
}

TEST(WanDit, TimestepsOfARunMayBeEmbeddedTogether) {
  const WanDit model = hash_dit(test::dit_config_d2());
  const TimeConditioning all = model.embed_timesteps(at::tensor({0.0F, 999.0F, 937.0F, 833.0F}));
  const TimeConditioning two = all.rows({0, 2});
  const TimeConditioning alone = model.embed_timesteps(at::tensor({937.0F}));
  EXPECT_EQ(two.projection.size(0), 2);
  EXPECT_TRUE(test::near(two.projection.narrow(0, 1, 1), alone.projection, 1e-5));
  EXPECT_TRUE(test::near(two.embedding.narrow(0, 1, 1), alone.embedding, 1e-5));
}

TEST(WanDit, EqualTokensWithOneOrManyTimestepsAgree) {
  const WanDit model = hash_dit(test::dit_config_d2());
  const at::Tensor latents = test::hash_input(0, {1, 48, 3, 4, 6});
  const at::Tensor text = test::hash_input(1, {1, 16, 32});
  const Timesteps all_the_same{at::tensor({937.0F, 937.0F}), at::arange(18, at::kLong).remainder(2)};
  EXPECT_TRUE(
      test::near(run(model, latents, all_the_same, text).output, run(model, latents, one_timestep(937), text).output, 2e-5));
}

TEST(WanDit, BatchOfTwoEqualsTwoRuns) {
  const WanDit model = hash_dit(test::dit_config_d2());
  const at::Tensor latents = test::hash_input(0, {1, 48, 3, 4, 6});
  const at::Tensor texts = test::hash_input(1, {2, 16, 32});
  const at::Tensor both = run(model, latents.expand({2, -1, -1, -1, -1}).contiguous(), one_timestep(937), texts).output;
  EXPECT_TRUE(test::near(both.narrow(0, 0, 1), run(model, latents, one_timestep(937), texts.narrow(0, 0, 1)).output, 2e-5));
  EXPECT_TRUE(test::near(both.narrow(0, 1, 1), run(model, latents, one_timestep(937), texts.narrow(0, 1, 1)).output, 2e-5));
}

TEST(WanDit, RefusesOddLatentsAndGridsBeyondItsTable) {
  const WanDit model = hash_dit(test::dit_config_d1());
  EXPECT_THROW(token_grid(at::zeros({1, 4, 2, 5, 6})), c10::Error);
  EXPECT_THROW(model.rope({33, 2, 2}), c10::Error);
}

TEST(WanDit, NamesMissingTensors) {
  const WanConfig config = test::dit_config_d1();
  auto weights = test::hash_weights(test::dit_shapes(config));
  weights.erase("blocks.1.attn2.norm_k.weight");
  weights["blocks.0.attn2.norm_added_q.weight"] = at::ones({24});
  const Result<WanDit> model = WanDit::load(config, test::MapWeightSource(weights), at::kCPU, at::kFloat);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(model.error().message, "blocks.1.attn2.norm_k.weight is missing in memory");
}

}  // namespace
}  // namespace merope::worker
