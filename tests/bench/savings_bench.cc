// The exact savings, each beside the plain computation it replaces: 2 blocks at the widths of the 1.3B model, one layer of
// the text encoder at its true widths. Every pair is compared before it is timed.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/torch/dit_shapes.h"
#include "tests/support/torch/hash_weights.h"
#include "worker/model/umt5/umt5_encoder.h"
#include "worker/model/wan_dit.h"

namespace merope::worker {
namespace {

constexpr std::int64_t kTextRows = 512;
constexpr std::int64_t kRealTokens = 40;

void require_near(const at::Tensor& a, const at::Tensor& b, const char* what) {
  const double difference = (a - b).abs().max().item<double>();
  const double scale = b.abs().max().item<double>();
  if (!(difference <= 1e-4 * scale)) {
    std::fprintf(stderr, "savings_bench: %s differ by %g of %g\n", what, difference, scale);
    std::exit(1);
  }
}

const WanDit& dit() {
  static const WanDit model = [] {
    WanConfig config;
    config.n_heads = 12;
    config.in_channels = config.out_channels = 16;
    config.ffn_dim = 8960;
    config.n_layers = 2;
    const test::MapWeightSource source(test::hash_weights(test::dit_shapes(config)));
    return WanDit::load(config, source, at::kCPU, at::kFloat).value();
  }();
  return model;
}

// A clip of `frames` latent frames of 18 x 32 positions (288 x 512 pixels): 144 tokens a frame.
struct Clip {
  explicit Clip(std::int64_t frames, std::int64_t batch = 1)
      : latents(test::hash_input(0, {1, 16, frames, 18, 32}).expand({batch, -1, -1, -1, -1})),
        rope(dit().rope(token_grid(latents))),
        noise{dit().embed_timesteps(at::full({1}, 937.0F)), {}} {}

  at::Tensor pass(const TextContext& text) const { return dit().forward(latents, noise, text, rope, nullptr); }

  at::Tensor latents, rope;
  NoiseLevel noise;
};

at::Tensor text_states(std::int64_t batch = 1) {
  return test::hash_input(1, {batch, kRealTokens, 4096});
}

const Umt5Encoder& umt5() {
  static const Umt5Encoder encoder = [] {
    Umt5Config config;
    config.vocab_size = 64;
    config.d_model = 4096;
    config.d_kv = 64;
    config.d_ff = 10240;
    config.n_heads = 64;
    config.n_layers = 1;
    test::Shapes shapes;
    const std::string layer = "encoder.block.0.layer.";
    shapes["shared.weight"] = {64, 4096};
    for (const char* name : {"q", "k", "v", "o"}) {
      shapes[layer + "0.SelfAttention." + name + ".weight"] = {4096, 4096};
    }
    shapes[layer + "0.SelfAttention.relative_attention_bias.weight"] = {32, 64};
    shapes[layer + "0.layer_norm.weight"] = {4096};
    shapes[layer + "1.layer_norm.weight"] = {4096};
    shapes[layer + "1.DenseReluDense.wi_0.weight"] = {10240, 4096};
    shapes[layer + "1.DenseReluDense.wi_1.weight"] = {10240, 4096};
    shapes[layer + "1.DenseReluDense.wo.weight"] = {4096, 10240};
    shapes["encoder.final_layer_norm.weight"] = {4096};
    const test::MapWeightSource source(test::hash_weights(shapes));
    WeightReader reader(source, at::kCPU, at::kFloat);
    return Umt5Encoder(config, reader);
  }();
  return encoder;
}

void text_encoder(benchmark::State& state) {
  std::vector<std::int64_t> ids(kTextRows, 0);
  for (std::int64_t i = 0; i < kRealTokens; ++i) {
    ids[static_cast<std::size_t>(i)] = (i * 7 + 3) % 64;
  }
  const std::span<const std::int64_t> all(ids);
  const std::span<const std::int64_t> given = all.first(static_cast<std::size_t>(state.range(0)));
  const auto real = [&](std::span<const std::int64_t> tokens) {
    return umt5_hidden_states(umt5(), tokens, kRealTokens).narrow(0, 0, kRealTokens);
  };
  require_near(real(given), real(all), "text states");
  for (auto _ : state) {
    benchmark::DoNotOptimize(real(given));
  }
}
BENCHMARK(text_encoder)->ArgName("rows")->Arg(kTextRows)->Arg(kRealTokens)->Unit(benchmark::kMillisecond)->UseRealTime();

void text_padding(benchmark::State& state) {
  const Clip clip(2);
  const at::Tensor padded = at::constant_pad_nd(text_states(), {0, 0, 0, kTextRows - kRealTokens});
  const TextContext plain = dit().encode_text(padded, kTextRows);
  const TextContext text = state.range(0) != 0 ? dit().encode_text(text_states(), kTextRows) : plain;
  require_near(clip.pass(text), clip.pass(plain), "velocities with folded padding");
  for (auto _ : state) {
    benchmark::DoNotOptimize(clip.pass(text));
  }
}
BENCHMARK(text_padding)->ArgName("folded")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();

// What a pass saves that need not make the keys and values of the text, or embed its timestep.
void text_keys_and_values(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(dit().encode_text(text_states(), kTextRows));
  }
}
BENCHMARK(text_keys_and_values)->Unit(benchmark::kMillisecond)->UseRealTime();

void timesteps(benchmark::State& state) {
  const at::Tensor values = at::linspace(0, 999, state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(dit().embed_timesteps(values));
  }
}
BENCHMARK(timesteps)->ArgName("together")->Arg(1)->Arg(51)->Unit(benchmark::kMillisecond)->UseRealTime();

void rope(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(dit().rope({13, 9, 16}));
  }
}
BENCHMARK(rope)->Unit(benchmark::kMillisecond)->UseRealTime();

// Both branches of guidance in one pass or two, for clips of few and of many tokens.
void guidance(benchmark::State& state) {
  const std::int64_t frames = state.range(0) / 144;
  const Clip one(frames);
  const Clip two(frames, 2);
  const TextContext text = dit().encode_text(text_states(2), kTextRows);
  const auto in_two_passes = [&] { return at::cat({one.pass(text.prompt(0)), one.pass(text.prompt(1))}); };
  require_near(two.pass(text), in_two_passes(), "velocities of one pass and two");
  for (auto _ : state) {
    benchmark::DoNotOptimize(state.range(1) == 1 ? two.pass(text) : in_two_passes());
  }
}
BENCHMARK(guidance)
    ->ArgNames({"tokens", "passes"})
    ->ArgsProduct({{144, 432, 1008, 1872}, {2, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace merope::worker

int main(int argc, char** argv) {
  const c10::InferenceMode no_gradients;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
