#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/support/torch/dit_shapes.h"
#include "tests/support/torch/golden.h"
#include "tests/support/torch/hash_weights.h"
#include "tests/support/torch/vae_shapes.h"
#include "tests/worker/pipeline/pipeline_goldens.h"
#include "tests/worker/pipeline/recording_observer.h"
#include "worker/model/wan_dit.h"
#include "worker/pipeline/clip_decoder.h"
#include "worker/pipeline/conditioning.h"
#include "worker/pipeline/denoise_loop.h"
#include "worker/schedule/schedulers.h"

namespace merope::worker {
namespace {

// Guidance multiplies the model's rounding by up to nine and the solver's chain does so again.
constexpr double kTolerance = 1e-3;

WanDit hash_dit(const WanConfig& config) {
  const test::MapWeightSource source(test::hash_weights(test::dit_shapes(config)));
  Result<WanDit> model = WanDit::load(config, source, at::kCPU, at::kFloat);
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  return *std::move(model);
}

struct Denoised {
  at::Tensor latents;
  std::map<std::string, at::Tensor> seen;
};

Denoised run(const WanDit& model,
             const at::Tensor& noise,
             const at::Tensor& prefix,
             double shift,
             test::RecordingObserver& observer,
             bool one_pass = false) {
  Denoised result;
  const ProbeFunction remember = [&](const std::string& name, const at::Tensor& value) { result.seen[name] = value; };
  SchedulerSettings settings;
  settings.shift = shift;
  const Result<SamplingPlan> plan = make_sampling_plan(settings, 4);
  DenoiseInputs inputs;
  inputs.noise = (noise.to(at::kDouble) * std::sqrt(3.0)).to(at::kFloat);
  inputs.prefix = prefix;
  inputs.text = model.encode_text(at::cat({test::hash_input(11, {1, 16, 32}), test::hash_input(12, {1, 16, 32})}), 16);
  inputs.n_prompts = 2;
  inputs.guidance_scale = 5;
  inputs.one_pass = one_pass;
  Result<at::Tensor> latents = denoise(model, *plan, inputs, observer, Probe(remember));
  EXPECT_TRUE(latents);
  result.latents = *latents;
  result.seen["latents"] = result.latents;
  result.seen["prefix"] = prefix;
  return result;
}

void expect_goldens(const std::map<std::string, at::Tensor>& seen, const std::vector<test::NamedGolden>& goldens) {
  for (const test::NamedGolden& golden : goldens) {
    const auto it = seen.find(golden.name);
    ASSERT_NE(it, seen.end()) << golden.name;
    EXPECT_TRUE(test::matches(it->second, golden.row, kTolerance)) << golden.name;
  }
}

std::int64_t byte_sum(const media::RgbFrames& frames) {
  std::int64_t sum = 0;
  for (const std::uint8_t byte : frames.pixels) {
    sum += byte;
  }
  return sum;
}

WanVae hash_vae(const VaeConfig& config) {
  // The weights own their memory, which the model may go on using.
  const test::MapWeightSource source(test::hash_weights(test::vae_shapes(config)));
  Result<WanVae> vae = WanVae::load(config, source, at::kCPU, at::kFloat);
  EXPECT_TRUE(vae) << (vae ? "" : vae.error().message);
  return *std::move(vae);
}

void expect_bytes(const media::RgbFrames& clip, std::int64_t sum, const std::vector<int>& first) {
  // One rounding tie or so may fall the other way.
  EXPECT_NEAR(static_cast<double>(byte_sum(clip)), static_cast<double>(sum), std::max(5.0, 1e-6 * static_cast<double>(sum)));
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_NEAR(clip.pixels[i], first[i], 1) << i;
  }
}

TEST(PipelineGolden, TextToVideo) {
  test::RecordingObserver observer;
  const WanVae vae = hash_vae(test::vae_config_v21());
  Denoised result = run(hash_dit(test::dit_config_d3()), test::hash_input(10, {1, 16, 3, 4, 6}), {}, 3, observer);
  result.seen["denormalised"] = vae.denormalise(result.latents);
  result.seen["decoded"] = vae.decode(result.latents);
  expect_goldens(result.seen, test::kP1);

  ASSERT_TRUE(decode_clip(vae, result.latents, {}, observer));
  EXPECT_EQ(observer.clip.n_frames, 9);
  expect_bytes(observer.clip, 4678939, {146, 129, 127, 97, 134, 164, 56, 133});
  EXPECT_EQ(observer.count(Stage::kDenoise), 4);
}

// inp(20; 1,3,n,64,96) as latents: not bytes, so it does not go through encode_prefix.
at::Tensor prefix_latents(const WanVae& vae, std::int64_t n_frames) {
  return vae.encode(test::hash_input(20, {1, 3, n_frames, 64, 96}));
}

TEST(PipelineGolden, OneConditioningFrame) {
  test::RecordingObserver observer;
  const WanVae vae = hash_vae(test::vae_config_v22());
  Denoised result =
      run(hash_dit(test::dit_config_d2()), test::hash_input(10, {1, 48, 4, 4, 6}), prefix_latents(vae, 1), 5, observer);
  result.seen["decoded"] = vae.decode(result.latents);
  expect_goldens(result.seen, test::kP2);
  ASSERT_TRUE(decode_clip(vae, result.latents, {}, observer));
  EXPECT_EQ(observer.clip.n_frames, 13);
  expect_bytes(observer.clip, 27612186, {143, 102, 150, 101, 137, 84, 161, 115});
}

TEST(PipelineGolden, NineConditioningFrames) {
  test::RecordingObserver observer;
  const WanVae vae = hash_vae(test::vae_config_v22());
  Denoised result =
      run(hash_dit(test::dit_config_d2()), test::hash_input(10, {1, 48, 4, 4, 6}), prefix_latents(vae, 9), 5, observer);
  result.seen["decoded"] = vae.decode(result.latents);
  expect_goldens(result.seen, test::kP3);
  ASSERT_TRUE(decode_clip(vae, result.latents, {}, observer));
  expect_bytes(observer.clip, 27611010, {103, 89, 138, 144, 159, 102, 116, 124});
}

TEST(Denoise, OnePassOverBothPromptsEqualsTwoPasses) {
  const WanDit model = hash_dit(test::dit_config_d2());
  const at::Tensor noise = test::hash_input(10, {1, 48, 4, 4, 6});
  for (const std::int64_t n_clean : {0, 1, 3}) {
    const at::Tensor prefix = n_clean > 0 ? test::hash_input(21, {1, 48, n_clean, 4, 6}) : at::Tensor();
    test::RecordingObserver observer;
    int n_passes = 0;
    observer.on_may_continue = [&n_passes]() -> Status {
      ++n_passes;
      return {};
    };
    const at::Tensor plain = run(model, noise, prefix, 5, observer).latents;
    EXPECT_EQ(n_passes, 8);
    const at::Tensor together = run(model, noise, prefix, 5, observer, /*one_pass=*/true).latents;
    EXPECT_EQ(n_passes, 8 + 4);
    EXPECT_TRUE(test::near(together, plain, 1e-4)) << n_clean;
  }
}

}  // namespace
}  // namespace merope::worker
