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

// A transformer and what it computes once for all its steps.
struct AtWork {
  const WanDit* model = nullptr;
  TimeConditioning time;            // row 0: the timestep of clean tokens; row i + 1: that of step i
  std::vector<TextContext> passes;  // the prompt comes first
};

AtWork at_work(const Expert& expert, const SamplingPlan& plan, const DenoiseInputs& inputs) {
  std::vector<float> timesteps = {0.0F};
  for (const SolverStep& step : plan) {
    timesteps.push_back(step.timestep);
  }
  AtWork result{expert.model, expert.model->embed_timesteps(at::tensor(timesteps)), {expert.text}};
  if (inputs.n_prompts == 2 && !inputs.one_pass) {
    result.passes = {expert.text.prompt(0), expert.text.prompt(1)};
  }
  return result;
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
  const at::Tensor condition = inputs.condition.defined() ? inputs.condition.to(device) : at::Tensor();
  const auto model_input = [&](const at::Tensor& generated) {
    const at::Tensor clip = with_prefix(generated);
    return condition.defined() ? at::cat({clip, condition}, 1) : clip;
  };
  const std::int64_t batch = inputs.one_pass ? inputs.n_prompts : 1;
  AtWork working = at_work({&model, inputs.text}, plan, inputs);
  bool taken_over = !inputs.low_noise;

  at::Tensor latents = inputs.noise.slice(2, n_clean).to(device);
  SolverRun<at::Tensor> run(plan);
  while (!run.finished()) {
    if (!taken_over && run.step().timestep < inputs.low_noise->boundary) {
      working = {};
      MEROPE_ASSIGN_OR_RETURN(const Expert second, inputs.low_noise->enter());
      working = at_work(second, plan, inputs);
      taken_over = true;
    }
    const auto row = static_cast<std::int64_t>(run.index()) + 1;
    const NoiseLevel noise =
        n_clean > 0 ? NoiseLevel{working.time.rows({0, row}), index} : NoiseLevel{working.time.rows({row}), at::Tensor()};
    const at::Tensor noisy = model_input(latents).expand({batch, -1, -1, -1, -1});
    std::vector<at::Tensor> velocities;
    for (const TextContext& text : working.passes) {
      MEROPE_RETURN_IF_ERROR(observer.may_continue());
      velocities.push_back(working.model->forward(noisy, noise, text, rope, inputs.camera).slice(2, n_clean).to(at::kFloat));
    }
    at::Tensor velocity = at::cat(velocities);
    if (inputs.n_prompts == 2) {
      const at::Tensor away = velocity.narrow(0, 1, 1);
      velocity = away + (velocity.narrow(0, 0, 1) - away) * inputs.guidance_scale;
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
