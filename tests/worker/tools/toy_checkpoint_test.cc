// The checkpoint that worker/tools/make_toy_checkpoint.py writes is read by the same code that reads a trained one.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/worker/weights/weight_files.h"
#include "worker/model/checkpoint_weights.h"
#include "worker/model/umt5/umt5_encoder.h"
#include "worker/model/vae/wan_vae.h"
#include "worker/model/wan_dit.h"
#include "worker/schedule/schedulers.h"
#include "worker/text/prompt_tokenizer.h"

namespace merope::worker {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

void make_checkpoint(const fs::path& folder) {
  const char* const root = std::getenv("MEROPE_SOURCE_DIR");
  const std::string command = "python3 '" + std::string(root == nullptr ? "." : root) +
                              "/worker/tools/make_toy_checkpoint.py' '" + folder.string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

class ToyCheckpoint : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<test::TempFolder>();
    make_checkpoint(folder_->path());
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static fs::path path(const std::string& name) { return folder_->path() / name; }
  static std::unique_ptr<const CheckpointWeights> weights(const std::string& component) {
    auto opened = CheckpointWeights::open(path(component));
    EXPECT_TRUE(opened) << opened.error().message;
    return *std::move(opened);
  }

  static std::unique_ptr<test::TempFolder> folder_;
};

std::unique_ptr<test::TempFolder> ToyCheckpoint::folder_;

TEST_F(ToyCheckpoint, SaysThatItIsNotTrained) {
  const auto index = nlohmann::json::parse(text_of(path("model_index.json")));
  EXPECT_EQ(index.at("_class_name"), "WanPipeline");
  EXPECT_EQ(index.at("_merope").at("trained"), false);
  EXPECT_EQ(index.at("expand_timesteps"), true);
}

TEST_F(ToyCheckpoint, TransformerLoadsStrictlyFromItsShards) {
  const std::string file = path("transformer/config.json").string();
  const Result<WanConfig> config = parse_wan_config(text_of(file), file);
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_TRUE(config->camera);
  EXPECT_EQ(config->camera->injection_blocks, (std::vector<int>{1, 3}));
  EXPECT_EQ(config->camera->width(), 128);
  const auto source = weights("transformer");
  EXPECT_NE(source->origin("blocks.0.attn1.to_q.weight"), source->origin("scale_shift_table"));
  const Result<WanDit> transformer = WanDit::load(*config, *source, at::kCPU, at::kFloat);
  ASSERT_TRUE(transformer) << transformer.error().message;
}

TEST_F(ToyCheckpoint, VaeLoadsStrictlyAndItsPicturesAreNotSaturated) {
  const c10::InferenceMode no_gradients;
  const std::string file = path("vae/config.json").string();
  const Result<VaeConfig> config = parse_vae_config(text_of(file), file);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->spatial_scale(), 16);
  const auto source = weights("vae");
  const Result<WanVae> vae = WanVae::load(*config, *source, at::kCPU, at::kFloat);
  ASSERT_TRUE(vae) << vae.error().message;
  const at::Tensor frames = at::linspace(-1, 1, 3 * 5 * 32 * 32).view({1, 3, 5, 32, 32});
  const at::Tensor latents = vae->encode(frames);
  EXPECT_EQ(latents.sizes(), at::IntArrayRef({1, 48, 2, 2, 2}));
  const at::Tensor decoded = vae->decode(latents);
  EXPECT_EQ(decoded.sizes(), frames.sizes());
  EXPECT_LT((decoded.abs() >= 1).to(at::kFloat).mean().item<float>(), 0.2F);
  EXPECT_GT(decoded.std().item<float>(), 0.05F);
}

TEST_F(ToyCheckpoint, APromptGoesThroughTokenizerAndEncoder) {
  const c10::InferenceMode no_gradients;
  const auto tokenizer = PromptTokenizer::open(path("tokenizer"));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto& pieces = tokenizer->unigram().model().pieces;
  const PromptTokens tokens = tokenizer->tokenize("The camera moves slowly, caf\u00E9!", 512);
  std::string joined;
  for (std::int64_t i = 0; i < tokens.n_real; ++i) {
    joined += (i == 0 ? "" : " ") + pieces[static_cast<std::size_t>(tokens.ids[static_cast<std::size_t>(i)])].text;
  }
  EXPECT_EQ(joined, "\u2581 T h e \u2581camera \u2581moves \u2581slowly , \u2581 c a f <0xC3> <0xA9> ! </s>");

  const std::string file = path("text_encoder/config.json").string();
  const Result<Umt5Config> config = Umt5Config::parse(text_of(file), file);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_GE(config->vocab_size, static_cast<std::int64_t>(pieces.size()));
  const auto source = weights("text_encoder");
  EXPECT_EQ(source->find("shared.weight")->scalar_type(), at::kBFloat16);
  WeightReader reader(*source, at::kCPU, at::kFloat);
  const Umt5Encoder encoder(*config, reader);
  const Status status = reader.finish();
  ASSERT_TRUE(status) << status.error().message;
  const at::Tensor embeds = umt5_prompt_embeds(encoder, tokens.ids, tokens.n_real);
  EXPECT_EQ(embeds.sizes(), at::IntArrayRef({1, 512, 64}));
  const double rms = embeds.slice(1, 0, tokens.n_real).square().mean().sqrt().item<double>();
  EXPECT_GT(rms, 0.3);
  EXPECT_LT(rms, 3.0);
}

TEST_F(ToyCheckpoint, SchedulerSettingsAreRead) {
  const auto settings = parse_scheduler_config(text_of(path("scheduler/scheduler_config.json")));
  ASSERT_TRUE(settings) << settings.error().message;
}

TEST_F(ToyCheckpoint, IsTheSameEveryTime) {
  const test::TempFolder again;
  make_checkpoint(again.path());
  for (const auto& entry : fs::recursive_directory_iterator(again.path())) {
    if (entry.is_regular_file()) {
      const fs::path name = fs::relative(entry.path(), again.path());
      EXPECT_TRUE(text_of(entry.path()) == text_of(path(name.string()))) << name;
    }
  }
}

}  // namespace
}  // namespace merope::worker
