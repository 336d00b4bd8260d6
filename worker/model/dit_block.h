// One transformer block: self-attention with the camera branch beside it, cross-attention to the text, feed-forward.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "worker/model/cam_branch.h"
#include "worker/model/cross_attention.h"
#include "worker/model/self_attention.h"
#include "worker/model/time_embed.h"

namespace merope::worker {

// What all blocks of one pass share.
struct BlockContext {
  const NoiseLevel* noise = nullptr;
  at::Tensor rope;                          // rope_table()
  const CameraAttention* camera = nullptr;  // null: blocks run without their camera branch
};

struct FeedForward {
  Linear in;   // d -> ffn
  Linear out;  // ffn -> d

  at::Tensor operator()(const at::Tensor& x) const;
};

struct DitBlock {
  at::Tensor scale_shift_table;  // [1, 6, d] fp32: shift, scale, gate of attention, then of the feed-forward
  SelfAttention attn1;
  at::Tensor norm2_weight, norm2_bias;  // [d] fp32; undefined when the model has no norm before the cross-attention
  CrossAttention attn2;
  FeedForward ffn;
  std::optional<CamBranch> cam_attn;
  double eps = 1e-6;

  // x: [B, S, d] in the model's dtype. Norms, modulation and gated sums are fp32 inside, each rounded once.
  //   x += gate * (attn1(n) + cam_attn(n)),  n = modulated norm of x
  //   x += attn2(norm2(x), text)
  //   x += gate_ffn * ffn(modulated norm of x)
  at::Tensor operator()(const at::Tensor& x,
                        const BlockContext& context,
                        const TextKeyValue& text,
                        const at::Tensor& text_bias,
                        const Probe& probe) const;
};

// Tensors of `prefix` ("blocks.3"); with_camera: also those of its camera branch.
DitBlock read_dit_block(WeightReader& reader, const std::string& prefix, const WanConfig& config, bool with_camera);

}  // namespace merope::worker
