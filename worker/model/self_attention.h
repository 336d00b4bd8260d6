// Self-attention of a block: every token attends to every token of the clip.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/model/linear.h"
#include "worker/model/probe.h"
#include "worker/model/wan_config.h"

namespace merope::worker {

struct SelfAttention {
  Linear to_q, to_k, to_v, to_out;  // d -> d
  at::Tensor norm_q, norm_k;        // [d]: the norm runs over all heads together
  std::int64_t n_heads = 0;
  double eps = 1e-6;

  // x: [B, S, d]; rope: table of rope_table(). Returns [B, S, d].
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& rope, const Probe& probe) const;
};

SelfAttention read_self_attention(WeightReader& reader, const std::string& prefix, const WanConfig& config);

// [B, S, d] -> [B, S, heads, d / heads]
at::Tensor split_heads(const at::Tensor& x, std::int64_t n_heads);

// softmax(q k^T / sqrt(D) + bias) v. q: [B, S, heads, D]; k, v: [B, T, heads, D]; bias: [1, 1, 1, T] or undefined.
// Returns [B, S, heads, D].
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias);

}  // namespace merope::worker
