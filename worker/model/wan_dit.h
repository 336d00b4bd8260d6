// The Wan diffusion transformer: noisy latents, noise level, text and cameras in, flow velocity out.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "core/base/result.h"
#include "worker/model/dit_block.h"
#include "worker/model/patch_embed.h"
#include "worker/model/wan_config.h"
#include "worker/model/weight_source.h"

namespace merope::worker {

// A batch of prompts as the blocks use them. Computed once per job, used in every step.
struct TextContext {
  std::vector<TextKeyValue> blocks;
  at::Tensor bias;  // [1, 1, 1, T] for the logits; undefined when every row counts once

  // The i-th prompt of the batch alone; a view.
  TextContext prompt(std::int64_t i) const;
};

// Weights and functions. Immutable; one thread at a time, since ATen's CPU operators use one thread pool.
class WanDit {
 public:
  // Reads every tensor of the transformer and refuses a source with missing, superfluous or broken ones (kDataLoss).
  // dtype: of activations and most weights; the names that must stay fp32 do (norms, modulation tables, time embedding).
  static Result<WanDit> load(const WanConfig& config, const WeightSource& weights, at::Device device, at::ScalarType dtype);

  // states: [B, n, text_dim], the rows of the text encoder; a prompt that is shorter than the longest of the batch ends in
  // zero rows. The model sees padded_length rows of which the missing ones are zero too: since those are all alike, a few
  // stand for all of them (padding_biases()).
  TextContext encode_text(const at::Tensor& states, std::int64_t padded_length, const Probe& probe = {}) const;

  // The rotary table of a clip, for forward().
  at::Tensor rope(const TokenGrid& grid) const;

  // timesteps: [n] fp32. All that a job will need at once, since the weights are large and the rows few.
  TimeConditioning embed_timesteps(const at::Tensor& timesteps, const Probe& probe = {}) const;

  // latents: [B, in_channels, f, h, w], h and w even. camera: null for a run without the camera branches.
  // Returns the velocity (noise - clean) [B, out_channels, f, h, w] in the model's dtype.
  at::Tensor forward(const at::Tensor& latents,
                     const NoiseLevel& noise,
                     const TextContext& text,
                     const at::Tensor& rope,
                     const CameraAttention* camera,
                     const Probe& probe = {}) const;

  const WanConfig& config() const { return config_; }
  at::Device device() const { return device_; }
  at::ScalarType dtype() const { return dtype_; }

 private:
  WanDit(const WanConfig& config, WeightReader& reader);

  WanConfig config_;
  at::Device device_;
  at::ScalarType dtype_;
  Linear patch_embedding_;
  TimeEmbed time_embed_;
  Linear text_linear_1_, text_linear_2_;
  std::vector<DitBlock> blocks_;
  at::Tensor head_table_;  // [1, 2, d] fp32: shift, scale
  Linear proj_out_;
};

}  // namespace merope::worker
