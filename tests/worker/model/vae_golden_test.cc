#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/torch/golden.h"
#include "tests/support/torch/hash_weights.h"
#include "tests/support/torch/vae_shapes.h"
#include "tests/worker/model/vae_goldens.h"
#include "worker/model/vae/wan_vae.h"

namespace merope::worker {
namespace {

// Above the rounding noise of fp32 (4e-6), below the mildest real mistake (an eps inside the norm's root: 5e-5).
constexpr double kTolerance = 2e-5;

WanVae hash_vae(const VaeConfig& config, at::ScalarType dtype = at::kFloat) {
  const test::MapWeightSource source(test::hash_weights(test::vae_shapes(config)));
  Result<WanVae> model = WanVae::load(config, source, at::kCPU, dtype);
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  return *std::move(model);
}

using Seen = std::map<std::string, at::Tensor>;

// Every activation of encoding `video` and of decoding `latents`, chunk by chunk, and the results, also of a run in tiles.
Seen run(const WanVae& model, const at::Tensor& video, const at::Tensor& latents, const VaeTiling& tiling) {
  Seen seen;
  int chunk = 0;
  const ProbeFunction remember = [&](const std::string& name, const at::Tensor& value) {
    seen[name + "@" + std::to_string(chunk)] = value;
  };
  StreamingVaeEncoder encoder(model);
  StreamingVaeEncoder tiled_encoder(model, tiling);
  std::vector<at::Tensor> moments;
  std::vector<at::Tensor> tiled_moments;
  for (chunk = 0; chunk < 3; ++chunk) {
    const at::Tensor frames = chunk == 0 ? video.narrow(2, 0, 1) : video.narrow(2, 4 * chunk - 3, 4);
    moments.push_back(encoder.moments(frames, Probe(remember)));
    tiled_moments.push_back(tiled_encoder.moments(frames));
  }
  seen["moments"] = at::cat(moments, 2);
  seen["tiled_moments"] = at::cat(tiled_moments, 2);
  seen["mean"] = model.encode(video);
  StreamingVaeDecoder decoder(model);
  std::vector<at::Tensor> frames;
  for (chunk = 0; chunk < 3; ++chunk) {
    frames.push_back(decoder.decode_latent_frame(latents.narrow(2, chunk, 1), Probe(remember)));
  }
  seen["video"] = at::cat(frames, 2);
  seen["tiled_decode"] = model.decode(latents, tiling);
  return seen;
}

void expect_goldens(const Seen& seen, const std::vector<test::VaeGolden>& goldens) {
  for (const test::VaeGolden& golden : goldens) {
    const auto it = seen.find(golden.name);
    ASSERT_NE(it, seen.end()) << golden.name;
    EXPECT_TRUE(test::matches(it->second, golden.row, kTolerance)) << golden.name;
  }
}

std::pair<std::size_t, std::int64_t> count(const test::Shapes& shapes) {
  std::int64_t parameters = 0;
  for (const auto& [name, shape] : shapes) {
    parameters += c10::multiply_integers(shape);
  }
  return {shapes.size(), parameters};
}

TEST(VaeGolden, PlainKindAgreesLayerByLayer) {
  const VaeConfig config = test::without_statistics(test::vae_config_v21());
  EXPECT_EQ(count(test::vae_shapes(config)), std::pair(std::size_t{146}, std::int64_t{668043}));
  expect_goldens(run(hash_vae(config),
                     test::hash_input(2, {1, 3, 9, 32, 32}),
                     test::hash_input(3, {1, 16, 3, 4, 4}),
                     {.size = 2, .stride = 1}),
                 test::kVaeV21);
}

TEST(VaeGolden, ResidualKindAgreesLayerByLayer) {
  const VaeConfig config = test::without_statistics(test::vae_config_v22());
  EXPECT_EQ(count(test::vae_shapes(config)), std::pair(std::size_t{148}, std::int64_t{1336976}));
  expect_goldens(run(hash_vae(config),
                     test::hash_input(2, {1, 3, 9, 64, 64}),
                     test::hash_input(3, {1, 48, 3, 4, 4}),
                     {.size = 3, .stride = 2}),
                 test::kVaeV22);
}

}  // namespace
}  // namespace merope::worker
