#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/camera/trajectory_shapes.h"
#include "tests/worker/pipeline/recording_observer.h"
#include "worker/pipeline/engine_factory.h"

namespace merope::worker {
namespace {

namespace fs = std::filesystem;

// A small checkpoint in the layout of real ones, made once by the project's own tool.
class Engine : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = (fs::temp_directory_path() / "merope_engine_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    const char* source = std::getenv("MEROPE_SOURCE_DIR");
    ASSERT_NE(source, nullptr) << "run through ctest, or set MEROPE_SOURCE_DIR";
    const std::string command =
        "python3 '" + std::string(source) + "/worker/tools/make_toy_checkpoint.py' '" + model().string() + "'";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    auto engine = open_engine({.model = model(), .device = "cpu", .threads = 1});
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = *std::move(engine);
  }
  static void TearDownTestSuite() {
    engine_.reset();
    fs::remove_all(root_);
  }

  static fs::path model() { return root_ / "toy"; }

  // A job of 9 frames and 2 steps.
  static GenerationSpec spec(const std::string& shape = "straight:6m") {
    GenerationSpec spec;
    spec.model = engine_->description().name;
    spec.encoding = engine_->description().encodings.front();
    spec.prompt = "a street";
    spec.width = 64;
    spec.height = 64;
    spec.n_frames = 9;
    spec.fps = 8;
    spec.seed = 3;
    spec.steps = 2;
    spec.guidance_scale = 2;
    spec.shift = engine_->description().default_shift;
    camera::Lens lens{spec.width, spec.height, camera::pinhole_from_fov(spec.width, spec.height, 1.2)};
    auto trajectory = camera::trajectory_from_shape(shape, spec.n_frames, spec.fps, lens);
    EXPECT_TRUE(trajectory);
    spec.trajectory = *trajectory;
    return spec;
  }

  static media::RgbFrames gradient(int n_frames) {
    media::RgbFrames frames{n_frames, 64, 64, {}};
    for (int i = 0; i < n_frames * 64 * 64; ++i) {
      for (int c = 0; c < 3; ++c) {
        frames.pixels.push_back(static_cast<std::uint8_t>((i % 64) * 2 + (i / 64 % 64) + 40 * c));
      }
    }
    return frames;
  }

  static media::RgbFrames generate(const GenerationSpec& spec, const media::RgbFrames& conditioning = {}) {
    test::RecordingObserver observer;
    const auto report = engine_->generate(spec, conditioning, observer);
    EXPECT_TRUE(report) << (report ? "" : report.error().message);
    return observer.clip;
  }

  static double mean_difference(const media::RgbFrames& a, const media::RgbFrames& b) {
    EXPECT_EQ(a.pixels.size(), b.pixels.size());
    double sum = 0;
    for (std::size_t i = 0; i < a.pixels.size(); ++i) {
      sum += std::abs(static_cast<int>(a.pixels[i]) - static_cast<int>(b.pixels[i]));
    }
    return sum / static_cast<double>(a.pixels.size());
  }

  static Error error_of(const GenerationSpec& spec, const media::RgbFrames& conditioning = {}) {
    test::RecordingObserver observer;
    const auto report = engine_->generate(spec, conditioning, observer);
    EXPECT_FALSE(report);
    EXPECT_EQ(observer.clip.n_frames, 0);
    return report ? Error{} : report.error();
  }

  // A copy of the checkpoint that may be broken.
  static fs::path copy(const std::string& name) {
    fs::remove_all(root_ / name);
    fs::copy(model(), root_ / name, fs::copy_options::recursive);
    return root_ / name;
  }

  static inline fs::path root_;
  static inline std::unique_ptr<GenerationEngine> engine_;
};

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void replace_in(const fs::path& path, const std::string& from, const std::string& to) {
  std::string text = text_of(path);
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << " in " << path;
  std::ofstream(path) << text.replace(at, from.size(), to);
}

Error open_error(const fs::path& model, const std::string& device = "cpu") {
  const auto engine = open_engine({.model = model, .device = device, .threads = 1});
  EXPECT_FALSE(engine) << model;
  return engine ? Error{} : engine.error();
}

TEST_F(Engine, DescribesTheCheckpoint) {
  const ModelDescription& description = engine_->description();
  EXPECT_EQ(description.architecture, "Wan2.2-TI2V");
  EXPECT_EQ(description.encodings, std::vector<std::string>{"merope"});
  EXPECT_EQ(description.size_multiple, 32);
  EXPECT_FALSE(description.trained);
  EXPECT_EQ(description.default_width % 32, 0);
  EXPECT_EQ(engine_->device(), "cpu");
}

TEST_F(Engine, ReportsItsStagesAndHandsOutFramesWhileDecoding) {
  test::RecordingObserver observer;
  GenerationSpec with_prefix = spec();
  with_prefix.n_conditioning_frames = 5;
  const auto report = engine_->generate(with_prefix, gradient(5), observer);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->n_frames, 9);
  EXPECT_EQ(observer.clip.n_frames, 9);
  std::vector<Stage> stages;
  for (const auto& [stage, seconds] : report->stage_seconds) {
    stages.push_back(stage);
    EXPECT_GE(seconds, 0);
  }
  EXPECT_EQ(stages, (std::vector<Stage>{Stage::kPrepare, Stage::kText, Stage::kEncode, Stage::kDenoise, Stage::kDecode}));
  EXPECT_EQ(observer.count(Stage::kText), 2);
  EXPECT_EQ(observer.count(Stage::kEncode), 2);
  EXPECT_EQ(observer.count(Stage::kDenoise), 2);
  EXPECT_EQ(observer.count(Stage::kDecode), 3);
  // The first frames leave before the last latent frame is decoded.
  std::vector<int> frames;
  for (const test::Event& event : observer.events) {
    if (event.is_frames) {
      frames.push_back(event.n_frames);
    }
  }
  EXPECT_EQ(frames, (std::vector<int>{1, 4, 4}));
}

TEST_F(Engine, TheSameRequestGivesTheSameBytes) {
  const GenerationSpec first = spec();
  const media::RgbFrames once = generate(first);
  EXPECT_EQ(once.pixels, generate(first).pixels);
  GenerationSpec other_seed = first;
  other_seed.seed = 4;
  EXPECT_GT(mean_difference(once, generate(other_seed)), 1);
}

TEST_F(Engine, MoreThreadsGiveTheSameClipUpToRounding) {
  const media::RgbFrames one = generate(spec());
  auto two_threads = open_engine({.model = model(), .device = "cpu", .threads = 2});
  ASSERT_TRUE(two_threads);
  test::RecordingObserver observer;
  ASSERT_TRUE((*two_threads)->generate(spec(), {}, observer));
  RecordProperty("mean_difference", std::to_string(mean_difference(one, observer.clip)));
  EXPECT_LT(mean_difference(one, observer.clip), 0.05);
}

TEST_F(Engine, TheTrajectorySteersTheVideo) {
  const media::RgbFrames straight = generate(spec("straight:6m"));
  EXPECT_GT(mean_difference(straight, generate(spec("turn:40deg/6m"))), 0.05);
  // Where the world's origin lies makes no difference.
  GenerationSpec far = spec("straight:6m");
  for (camera::TrajectoryFrame& frame : far.trajectory.frames) {
    frame.c2w.centre += camera::Vec3(4e5, -2e5, 30);
  }
  EXPECT_LT(mean_difference(straight, generate(far)), 0.05);
}

TEST_F(Engine, ThePromptAndTheNegativePromptMatter) {
  const GenerationSpec base = spec();
  const media::RgbFrames clip = generate(base);
  GenerationSpec other = base;
  other.prompt = "a forest in the snow, seen from a train";
  EXPECT_GT(mean_difference(clip, generate(other)), 0.01);
  other = base;
  other.negative_prompt = "blurred";
  const media::RgbFrames steered_away = generate(other);
  EXPECT_GT(mean_difference(clip, steered_away), 0.01);
  // Without guidance there is no second pass for it.
  other.guidance_scale = 1;
  const media::RgbFrames unguided = generate(other);
  other.negative_prompt = "";
  EXPECT_EQ(unguided.pixels, generate(other).pixels);
}

TEST_F(Engine, ConditioningFramesAreTheFirstFrames) {
  for (const int n : {1, 5}) {
    GenerationSpec with_prefix = spec();
    with_prefix.n_conditioning_frames = n;
    const media::RgbFrames conditioning = gradient(n);
    const media::RgbFrames clip = generate(with_prefix, conditioning);
    ASSERT_EQ(clip.n_frames, 9);
    EXPECT_TRUE(std::equal(conditioning.pixels.begin(), conditioning.pixels.end(), clip.pixels.begin())) << n;
    // They also shape what follows.
    EXPECT_GT(mean_difference(clip, generate(spec())), 1) << n;
  }
}

TEST_F(Engine, EulerIsASolverToo) {
  GenerationSpec euler = spec();
  euler.solver = Solver::kEuler;
  EXPECT_GT(mean_difference(generate(euler), generate(spec())), 0.01);
}

TEST_F(Engine, StopsBetweenPassesWhenTold) {
  for (const int allowed : {0, 3, 5}) {
    test::RecordingObserver observer;
    int asked = 0;
    observer.on_may_continue = [&]() -> Status {
      return asked++ < allowed ? Status() : Error{ErrorCode::kDeadlineExceeded, "max_run_time is over"};
    };
    const auto report = engine_->generate(spec(), {}, observer);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::kDeadlineExceeded);
    EXPECT_EQ(report.error().message, "max_run_time is over");
    EXPECT_EQ(asked, allowed + 1);
    // Two questions for the two prompts, then one a pass; a step of so small a clip is one pass over both.
    EXPECT_EQ(observer.count(Stage::kDenoise), std::clamp(allowed - 2, 0, 2));
  }
}

TEST_F(Engine, RefusesWhatTheModelCanNotDo) {
  GenerationSpec bad = spec();
  bad.encoding = "prope";
  EXPECT_EQ(error_of(bad).code, ErrorCode::kInvalidArgument);
  EXPECT_NE(error_of(bad).message.find("'prope'"), std::string::npos);

  bad = spec();
  bad.width = 48;
  EXPECT_NE(error_of(bad).message.find("48 x 64"), std::string::npos);

  bad = spec();
  bad.n_conditioning_frames = 5;
  EXPECT_NE(error_of(bad, gradient(1)).message.find("1 frames where 5"), std::string::npos);
  bad.n_conditioning_frames = 2;
  EXPECT_EQ(error_of(bad, gradient(2)).code, ErrorCode::kInvalidArgument);
}

TEST_F(Engine, SaysWhatIsWrongWithACheckpoint) {
  EXPECT_EQ(open_error(root_ / "nowhere").code, ErrorCode::kNotFound);

  const struct {
    const char* name;
    std::function<void(const fs::path&)> damage;
    ErrorCode code;
    const char* message;
  } cases[] = {
      {"no_index", [](const fs::path& m) { fs::remove(m / "model_index.json"); }, ErrorCode::kNotFound, "model_index.json"},
      {"no_vae_config",
       [](const fs::path& m) { fs::remove(m / "vae" / "config.json"); },
       ErrorCode::kNotFound,
       "vae/config.json"},
      {"no_tokenizer", [](const fs::path& m) { fs::remove_all(m / "tokenizer"); }, ErrorCode::kNotFound, "tokenizer"},
      {"half_json",
       [](const fs::path& m) { std::ofstream(m / "model_index.json") << "{"; },
       ErrorCode::kDataLoss,
       "model_index.json"},
      {"other_pipeline",
       [](const fs::path& m) { replace_in(m / "model_index.json", "\"WanPipeline\"", "\"StableDiffusionPipeline\""); },
       ErrorCode::kUnimplemented,
       "StableDiffusionPipeline"},
      {"two_experts_without_boundary",
       [](const fs::path& m) {
         replace_in(m / "model_index.json",
                    "\"transformer_2\": [\n    null,\n    null",
                    "\"transformer_2\": [\"diffusers\", \"WanTransformer3DModel\"");
       },
       ErrorCode::kDataLoss,
       "boundary_ratio"},
      {"vace",
       [](const fs::path& m) { replace_in(m / "model_index.json", "\"WanPipeline\"", "\"WanVACEPipeline\""); },
       ErrorCode::kUnimplemented,
       "Wan VACE, which is recognised and not served"},
      {"animate",
       [](const fs::path& m) {
         replace_in(m / "model_index.json", "\"WanTransformer3DModel\"", "\"WanAnimateTransformer3DModel\"");
       },
       ErrorCode::kUnimplemented,
       "Wan2.2-Animate, which is recognised and not served"},
      {"image_encoder",
       [](const fs::path& m) {
         replace_in(m / "model_index.json", "{", "{\"image_encoder\": [\"transformers\", \"CLIPVisionModel\"],");
       },
       ErrorCode::kUnimplemented,
       "Wan2.1-I2V, which has an image encoder"},
      {"other_vae",
       [](const fs::path& m) { replace_in(m / "model_index.json", "AutoencoderKLWan", "AutoencoderKL"); },
       ErrorCode::kUnimplemented,
       "vae"},
      {"image_branch",
       [](const fs::path& m) { replace_in(m / "transformer" / "config.json", "{", "{\"image_dim\": 1280,"); },
       ErrorCode::kUnimplemented,
       "image_dim"},
      {"other_solver",
       [](const fs::path& m) {
         replace_in(m / "scheduler" / "scheduler_config.json", "\"thresholding\": false", "\"thresholding\": true");
       },
       ErrorCode::kUnimplemented,
       "thresholding"},
      {"truncated",
       [](const fs::path& m) {
         for (const auto& entry : fs::directory_iterator(m / "vae")) {
           if (entry.path().extension() == ".safetensors") {
             fs::resize_file(entry.path(), fs::file_size(entry.path()) - 1);
           }
         }
       },
       ErrorCode::kDataLoss,
       "vae"},
  };
  for (const auto& c : cases) {
    const fs::path broken = copy(c.name);
    c.damage(broken);
    const Error error = open_error(broken);
    EXPECT_EQ(error.code, c.code) << c.name << ": " << error.message;
    EXPECT_NE(error.message.find(c.message), std::string::npos) << c.name << ": " << error.message;
    fs::remove_all(broken);
  }
}

TEST_F(Engine, SaysInOneSentenceThatThereIsNoSuchDevice) {
  EXPECT_EQ(open_error(model(), "tpu").code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(open_error(model(), "cuda:x").code, ErrorCode::kInvalidArgument);
  const Error error = open_error(model(), "cuda:99");
  EXPECT_EQ(error.code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(error.message.rfind("no CUDA device: cuda:99 was asked for, and ", 0), 0U) << error.message;
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace merope::worker
