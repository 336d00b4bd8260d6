#include "worker/pipeline/denoise_loop.h"

#include <ATen/ATen.h>

namespace merope::worker {
namespace {

// [S] index of each token's timestep in {0, t}: 0 for the tokens of the first n_clean latent frames, 1 for the others.
at::Tensor token_timestep_index(const TokenGrid& grid, std::int64_t n_clean, at::Device device) {
  const at::Tensor frame =
      at::arange(grid.n_tokens(), at::TensorOptions(at::kLong).device(device)).floor_divide(grid.rows * grid.columns);
  return (frame >= n_clean).to(at::kLong);
}

}  // namespace

Result<at::Tensor> denoise(const WanDit& model,
                           const SamplingPlan& plan,
                           const DenoiseInputs& inputs,
                           GenerationObserver& observer,
                           const Probe& probe) {
  const at::Device device = model.device();
  const std::int64_t n_clean = inputs.prefix.defined() ? inputs.prefix.size(2) : 0;
  const at::Tensor prefix = n_clean > 0 ? inputs.prefix.to(device) : at::Tensor();
  const TokenGrid grid = token_grid(inputs.noise);
  const at::Tensor rope = model.rope(grid);
  const at::Tensor index = n_clean > 0 ? token_timestep_index(grid, n_clean, device) : at::Tensor();
  const auto with_prefix = [&](const at::Tensor& generated) {
    return n_clean > 0 ? at::cat({prefix, generated}, 2) : generated;
  };

  at::Tensor latents = inputs.noise.slice(2, n_clean).to(device);
  SolverRun<at::Tensor> run(plan);
  while (!run.finished()) {
    const float t = run.step().timestep;
    const Timesteps timesteps{(n_clean > 0 ? at::tensor({0.0F, t}) : at::tensor({t})).to(device), index};
    const at::Tensor noisy = with_prefix(latents);
    const auto velocity_for = [&](const TextContext& text) -> Result<at::Tensor> {
      MEROPE_RETURN_IF_ERROR(observer.may_continue());
      return model.forward(noisy, timesteps, text, rope, inputs.camera).slice(2, n_clean).to(at::kFloat);
    };
    MEROPE_ASSIGN_OR_RETURN(at::Tensor velocity, velocity_for(inputs.prompt));
    if (inputs.negative) {
      MEROPE_ASSIGN_OR_RETURN(const at::Tensor away, velocity_for(*inputs.negative));
      velocity = away + (velocity - away) * inputs.guidance_scale;
    }
    latents = run.advance(latents, velocity);
    const Probe step_probe = probe.part("step." + std::to_string(run.index() - 1));
    step_probe("velocity", velocity);
    step_probe("latents", latents);
    observer.progress(Stage::kDenoise, static_cast<int>(run.index()), static_cast<int>(plan.size()));
  }
  return with_prefix(latents);
}

}  // namespace merope::worker
