#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/support/torch/dit_shapes.h"
#include "tests/support/torch/golden.h"
#include "tests/support/torch/hash_weights.h"
#include "tests/support/torch/vae_shapes.h"
#include "tests/worker/pipeline/experts_goldens.h"
#include "tests/worker/pipeline/recording_observer.h"
#include "worker/pipeline/conditioning.h"
#include "worker/pipeline/denoise_loop.h"
#include "worker/pipeline/experts.h"
#include "worker/schedule/schedulers.h"

namespace merope::worker {
namespace {

constexpr double kTolerance = 1e-3;  // as of the other whole runs

Experts hash_experts(std::int64_t in_channels, ExpertResidency residency) {
  WanConfig config = test::dit_config_d3();
  config.in_channels = in_channels;
  std::vector<Experts::Member> members;
  for (const std::uint64_t first : {0U, 500U}) {
    members.push_back(
        {config, std::make_unique<test::MapWeightSource>(test::hash_weights(test::dit_shapes(config), first))});
  }
  Result<Experts> experts = Experts::load(std::move(members), at::kCPU, at::kFloat, residency);
  EXPECT_TRUE(experts) << (experts ? "" : experts.error().message);
  return *std::move(experts);
}

WanVae hash_vae21() {
  const VaeConfig config = test::vae_config_v21();
  const test::MapWeightSource source(test::hash_weights(test::vae_shapes(config)));
  return *WanVae::load(config, source, at::kCPU, at::kFloat);
}

std::map<std::string, at::Tensor> run(
    Experts& experts, const WanVae& vae, double boundary, const at::Tensor& condition, int* n_entered = nullptr) {
  std::map<std::string, at::Tensor> seen;
  const ProbeFunction remember = [&](const std::string& name, const at::Tensor& value) { seen[name] = value; };
  SchedulerSettings settings;
  settings.shift = 3;
  const Result<SamplingPlan> plan = make_sampling_plan(settings, 4);
  const at::Tensor states = at::cat({test::hash_input(11, {1, 16, 32}), test::hash_input(12, {1, 16, 32})});
  const auto enter = [&](std::size_t i) -> Result<Expert> {
    MEROPE_ASSIGN_OR_RETURN(const WanDit* const dit, experts.use(i));
    return Expert{dit, dit->encode_text(states, 16)};
  };
  Result<Expert> high = enter(0);
  DenoiseInputs inputs;
  inputs.noise = (test::hash_input(10, {1, 16, 3, 4, 6}).to(at::kDouble) * std::sqrt(3.0)).to(at::kFloat);
  inputs.condition = condition;
  inputs.text = high->text;
  inputs.n_prompts = 2;
  inputs.guidance_scale = 5;
  inputs.low_noise = LowNoiseExpert{boundary * 1000, [&] {
                                      if (n_entered != nullptr) {
                                        ++*n_entered;
                                      }
                                      return enter(1);
                                    }};
  test::RecordingObserver observer;
  Result<at::Tensor> latents = denoise(*high->model, *plan, inputs, observer, Probe(remember));
  EXPECT_TRUE(latents) << (latents ? "" : latents.error().message);
  seen["decoded"] = vae.decode(*latents);
  seen["condition"] = condition;
  return seen;
}

void expect_goldens(const std::map<std::string, at::Tensor>& seen, const std::vector<test::NamedGolden>& goldens) {
  for (const test::NamedGolden& golden : goldens) {
    const auto it = seen.find(golden.name);
    ASSERT_NE(it, seen.end()) << golden.name;
    EXPECT_TRUE(test::matches(it->second, golden.row, kTolerance)) << golden.name;
  }
}

TEST(ExpertsGolden, TheSecondTakesOverBelowTheBoundary) {
  Experts experts = hash_experts(16, ExpertResidency::kBoth);
  int n_entered = 0;
  expect_goldens(run(experts, hash_vae21(), 0.875, {}, &n_entered), test::kP4);
  EXPECT_EQ(n_entered, 1);
}

TEST(ExpertsGolden, APictureIsSeenThroughChannelsOfTheInput) {
  Experts experts = hash_experts(36, ExpertResidency::kBoth);
  const WanVae vae = hash_vae21();
  test::RecordingObserver observer;
  const Result<at::Tensor> condition = image_condition(vae, test::hash_input(20, {1, 3, 1, 32, 48}), 9, observer);
  ASSERT_TRUE(condition);
  EXPECT_EQ(observer.count(Stage::kEncode), 3);
  expect_goldens(run(experts, vae, 0.9, *condition), test::kP5);
}

TEST(Experts, OneResidentAtATimeGivesTheSameBits) {
  const WanVae vae = hash_vae21();
  Experts both = hash_experts(16, ExpertResidency::kBoth);
  Experts one = hash_experts(16, ExpertResidency::kOne);
  EXPECT_FALSE(both.one_resident());
  EXPECT_TRUE(one.one_resident());
  const auto expected = run(both, vae, 0.875, {});
  for (int job = 0; job < 2; ++job) {
    EXPECT_TRUE(at::equal(run(one, vae, 0.875, {}).at("decoded"), expected.at("decoded"))) << job;
  }
  EXPECT_EQ(*both.use(0), *both.use(0));
}

TEST(Experts, BothAreCheckedBeforeTheFirstJob) {
  const WanConfig config = test::dit_config_d3();
  auto whole = test::hash_weights(test::dit_shapes(config));
  auto broken = whole;
  broken.erase("proj_out.bias");
  std::vector<Experts::Member> members;
  members.push_back({config, std::make_unique<test::MapWeightSource>(whole)});
  members.push_back({config, std::make_unique<test::MapWeightSource>(broken)});
  const Result<Experts> experts = Experts::load(std::move(members), at::kCPU, at::kFloat, ExpertResidency::kOne);
  ASSERT_FALSE(experts);
  EXPECT_NE(experts.error().message.find("proj_out.bias is missing"), std::string::npos);
}

TEST(Experts, MustShareLatentsAndText) {
  const WanConfig config = test::dit_config_d3();
  WanConfig other = config;
  other.text_dim = 16;
  std::vector<Experts::Member> members;
  members.push_back({config, std::make_unique<test::MapWeightSource>(test::hash_weights(test::dit_shapes(config)))});
  members.push_back({other, std::make_unique<test::MapWeightSource>(test::hash_weights(test::dit_shapes(other)))});
  const Result<Experts> experts = Experts::load(std::move(members), at::kCPU, at::kFloat);
  ASSERT_FALSE(experts);
  EXPECT_EQ(experts.error().code, ErrorCode::kDataLoss);
  EXPECT_NE(experts.error().message.find("text_dim"), std::string::npos);
}

}  // namespace
}  // namespace merope::worker
