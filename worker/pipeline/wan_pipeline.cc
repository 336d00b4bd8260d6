#include "worker/pipeline/wan_pipeline.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <chrono>

#include "core/base/log.h"
#include "core/camera/encoding/encodings.h"
#include "core/camera/trajectory.h"
#include "worker/pipeline/clip_decoder.h"
#include "worker/pipeline/conditioning.h"
#include "worker/pipeline/denoise_loop.h"
#include "worker/pipeline/exceptions.h"
#include "worker/pipeline/noise.h"

namespace merope::worker {
namespace {

// Seconds from one call of lap() to the next, into a report.
class StageClock {
 public:
  explicit StageClock(GenerationReport& report) : report_(report), since_(std::chrono::steady_clock::now()) {}

  void lap(Stage stage) {
    const auto now = std::chrono::steady_clock::now();
    report_.stage_seconds.emplace_back(stage, std::chrono::duration<double>(now - since_).count());
    since_ = now;
  }

 private:
  GenerationReport& report_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace

std::string WanPipeline::device() const {
  return parts_.experts.device().str();
}

Result<GenerationReport> WanPipeline::generate(const GenerationSpec& spec,
                                               const media::RgbFrames& conditioning,
                                               GenerationObserver& observer) {
  // The one place that turns gradients off; the model's code is also used where they are on.
  const c10::InferenceMode no_gradients;
  return errors_from_exceptions("generation", [&] { return run(spec, conditioning, observer); });
}

Status WanPipeline::check(const GenerationSpec& spec, const media::RgbFrames& conditioning) const {
  const ModelDescription& model = description();
  if (std::ranges::find(model.encodings, spec.encoding) == model.encodings.end()) {
    return invalid_argument("encoding: '" + spec.encoding + "' is not an encoding of model " + model.name);
  }
  if (spec.width % model.size_multiple != 0 || spec.height % model.size_multiple != 0) {
    return invalid_argument("width, height: " + std::to_string(spec.width) + " x " + std::to_string(spec.height) +
                            " are no multiples of " + std::to_string(model.size_multiple));
  }
  if (spec.n_frames % kTemporalScale != 1 || static_cast<int>(spec.trajectory.frames.size()) != spec.n_frames) {
    return invalid_argument("frames: " + std::to_string(spec.n_frames) + " with a trajectory of " +
                            std::to_string(spec.trajectory.frames.size()) + "; both must be the same number 4n+1");
  }
  const int n = conditioning.n_frames;
  if (n != spec.n_conditioning_frames || n >= spec.n_frames || (n > 0 && n % kTemporalScale != 1)) {
    return invalid_argument(
        "conditioning: " + std::to_string(n) + " frames where " + std::to_string(spec.n_conditioning_frames) +
        " are announced; it must be none, or 4n+1 and less than the clip's " + std::to_string(spec.n_frames));
  }
  if (n > 0 && (conditioning.width != spec.width || conditioning.height != spec.height)) {
    return invalid_argument("conditioning: frames of " + std::to_string(conditioning.width) + " x " +
                            std::to_string(conditioning.height) + " for a clip of " + std::to_string(spec.width) + " x " +
                            std::to_string(spec.height));
  }
  const std::string which = "conditioning: model " + model.name + " (" + model.architecture + ") ";
  if (n > 0 && parts_.checkpoint.conditioning == Conditioning::kNone) {
    return invalid_argument(which + "has one timestep for all frames and takes no conditioning frames");
  }
  if (n == 0 && parts_.checkpoint.conditioning == Conditioning::kInputChannels) {
    return invalid_argument(which + "makes a video from a picture and needs at least one conditioning frame");
  }
  return {};
}

Result<std::unique_ptr<CameraAttention>> WanPipeline::camera_attention(const GenerationSpec& spec,
                                                                       const TokenGrid& grid) const {
  if (parts_.experts.camera() == nullptr) {
    return std::unique_ptr<CameraAttention>();
  }
  const CameraBranchConfig& branch = *parts_.experts.camera();
  const std::vector<camera::TrajectoryFrame> cameras = camera::latent_cameras(spec.trajectory);
  const camera::TokenGrid per_camera{static_cast<int>(grid.rows), static_cast<int>(grid.columns)};
  MEROPE_ASSIGN_OR_RETURN(camera::EncodingTables tables,
                          camera::prepare_encoding(branch.name, branch.encoding, cameras, per_camera));
  if (tables.n_invalid_rays > 0) {
    log::warn("tokens outside their lens got a substitute ray",
              {{"tokens", tables.n_invalid_rays}, {"of", tables.n_tokens}});
  }
  return make_camera_attention(std::move(tables), parts_.experts.device(), {parts_.cpu_kernels, parts_.threads.get()});
}

Result<GenerationReport> WanPipeline::run(const GenerationSpec& spec,
                                          const media::RgbFrames& conditioning,
                                          GenerationObserver& observer) {
  MEROPE_RETURN_IF_ERROR(check(spec, conditioning));
  const std::int64_t scale = parts_.checkpoint.vae.spatial_scale();
  const std::int64_t n_latent_frames = (spec.n_frames - 1) / kTemporalScale + 1;
  GenerationReport report;
  StageClock clock(report);

  const TokenGrid grid{n_latent_frames, spec.height / (scale * kPatch), spec.width / (scale * kPatch)};
  MEROPE_ASSIGN_OR_RETURN(const std::unique_ptr<CameraAttention> camera, camera_attention(spec, grid));
  MEROPE_ASSIGN_OR_RETURN(
      const SamplingPlan plan,
      make_sampling_plan(with_request(parts_.checkpoint.scheduler, spec.solver, spec.sigma_grid, spec.shift), spec.steps));
  MEROPE_ASSIGN_OR_RETURN(const WanDit* const dit, parts_.experts.use(0));
  observer.progress(Stage::kPrepare, 1, 1);
  clock.lap(Stage::kPrepare);

  DenoiseInputs inputs;
  // Guidance of exactly 1 is the conditional velocity alone.
  std::vector<std::string> prompts = {spec.prompt};
  if (spec.guidance_scale > 1.0) {
    prompts.push_back(spec.negative_prompt);
  }
  inputs.n_prompts = static_cast<std::int64_t>(prompts.size());
  std::vector<at::Tensor> encoded;
  for (const std::string& prompt : prompts) {
    MEROPE_RETURN_IF_ERROR(observer.may_continue());
    encoded.push_back(parts_.text.encode(prompt, kTextRows));
    observer.progress(Stage::kText, static_cast<int>(encoded.size()), static_cast<int>(prompts.size()));
  }
  const at::Tensor states = stack_prompts(encoded);
  inputs.text = dit->encode_text(states, kTextRows);
  clock.lap(Stage::kText);

  if (parts_.checkpoint.conditioning == Conditioning::kInputChannels) {
    MEROPE_ASSIGN_OR_RETURN(inputs.condition, image_condition(parts_.vae, to_pixels(conditioning), spec.n_frames, observer));
  } else if (conditioning.n_frames > 0) {
    MEROPE_ASSIGN_OR_RETURN(inputs.prefix, encode_prefix(parts_.vae, conditioning, observer));
  }
  clock.lap(Stage::kEncode);

  inputs.noise =
      seeded_noise({1, parts_.checkpoint.vae.z_dim, n_latent_frames, spec.height / scale, spec.width / scale}, spec.seed);
  inputs.guidance_scale = spec.guidance_scale;
  inputs.one_pass = grid.n_tokens() <= kOnePassTokens;
  inputs.camera = camera.get();
  if (parts_.experts.size() == 2) {
    inputs.low_noise = LowNoiseExpert{parts_.checkpoint.boundary_ratio * parts_.checkpoint.scheduler.n_train_timesteps,
                                      [this, &states]() -> Result<Expert> {
                                        MEROPE_ASSIGN_OR_RETURN(const WanDit* const second, parts_.experts.use(1));
                                        return Expert{second, second->encode_text(states, kTextRows)};
                                      }};
  }
  MEROPE_ASSIGN_OR_RETURN(const at::Tensor latents, denoise(*dit, plan, inputs, observer));
  clock.lap(Stage::kDenoise);
  // Numbers that ran away make a black or grey clip that looks like a success.
  if (!latents.sum(at::kDouble).isfinite().item<bool>()) {
    return internal_error("denoising ended in NaN or infinity (steps " + std::to_string(spec.steps) + ", guidance_scale " +
                          std::to_string(spec.guidance_scale) + ")");
  }

  MEROPE_ASSIGN_OR_RETURN(report.n_frames, decode_clip(parts_.vae, latents, conditioning, observer));
  clock.lap(Stage::kDecode);
  return report;
}

}  // namespace merope::worker
