// From noise to clean latents: the solver's steps, each one or two passes of the transformer.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>

#include "core/base/result.h"
#include "worker/engine.h"
#include "worker/model/wan_dit.h"
#include "worker/schedule/solver_step.h"

namespace merope::worker {

// A transformer with the job's prompts as its blocks see them: keys and values are each transformer's own.
struct Expert {
  const WanDit* model = nullptr;
  TextContext text;  // as of DenoiseInputs
};

// What takes over in a model of two experts. `enter` is called once, before the first step whose timestep is below the
// boundary; from then on the first transformer is not used, so that it may be gone.
struct LowNoiseExpert {
  double boundary = 0;
  std::function<Result<Expert>()> enter;
};

struct DenoiseInputs {
  at::Tensor noise;   // [1, C, f, h, w] fp32
  at::Tensor prefix;  // [1, C, P, h, w] fp32, the clean latent frames the clip begins with; may be undefined
  // [1, C', f, h, w] fp32, channels that the model sees behind the latents in every pass (image_condition()); may be
  // undefined
  at::Tensor condition;
  TextContext text;  // of the prompt; with guidance of two, the second being the one to steer away from
  std::int64_t n_prompts = 1;
  double guidance_scale = 1.0;  // not used with one prompt
  // With two prompts: a batch of two instead of two passes. Reads every weight once instead of twice and needs the memory of
  // twice as many tokens; equal up to the rounding of the products.
  bool one_pass = false;
  const CameraAttention* camera = nullptr;  // may be null: no camera branch
  std::optional<LowNoiseExpert> low_noise;
};

// The latents of the whole clip, prefix included: [1, C, f, h, w] fp32 on the model's device. Tokens of the prefix have
// timestep 0, and their latents are the given ones in every pass, so that only the other frames go through the solver.
// Asks observer.may_continue() before every pass and reports every step. A probe sees "step.<i>.velocity" (guided) and
// "step.<i>.latents" of the generated frames.
Result<at::Tensor> denoise(const WanDit& model,
                           const SamplingPlan& plan,
                           const DenoiseInputs& inputs,
                           GenerationObserver& observer,
                           const Probe& probe = {});

}  // namespace merope::worker
