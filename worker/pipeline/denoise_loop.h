// From noise to clean latents: the solver's steps, each one or two passes of the transformer.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/base/result.h"
#include "worker/engine.h"
#include "worker/model/wan_dit.h"
#include "worker/schedule/solver_step.h"

namespace merope::worker {

struct DenoiseInputs {
  at::Tensor noise;   // [1, C, f, h, w] fp32
  at::Tensor prefix;  // [1, C, P, h, w] fp32, the clean latent frames the clip begins with; may be undefined
  TextContext text;   // of the prompt; with guidance of two, the second being the one to steer away from
  std::int64_t n_prompts = 1;
  double guidance_scale = 1.0;  // not used with one prompt
  // With two prompts: a batch of two instead of two passes. Reads every weight once instead of twice and needs the memory of
  // twice as many tokens; equal up to the rounding of the products.
  bool one_pass = false;
  const CameraAttention* camera = nullptr;  // may be null: no camera branch
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
