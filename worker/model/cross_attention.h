// Attention of video tokens to the text. Keys and values do not depend on the noise level: they are computed once per
// prompt.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/model/linear.h"
#include "worker/model/probe.h"
#include "worker/model/wan_config.h"

namespace merope::worker {

struct TextKeyValue {
  at::Tensor k, v;  // [B, T, heads, D]
};

struct CrossAttention {
  Linear to_q, to_k, to_v, to_out;  // d -> d
  at::Tensor norm_q, norm_k;        // [d]
  std::int64_t n_heads = 0;
  double eps = 1e-6;

  // text: [B, T, d], projected.
  TextKeyValue encode(const at::Tensor& text) const;
  // x: [B, S, d]; bias: [1, 1, 1, T] added to the logits, or undefined. Returns [B, S, d].
  at::Tensor operator()(const at::Tensor& x, const TextKeyValue& text, const at::Tensor& bias, const Probe& probe) const;
};

CrossAttention read_cross_attention(WeightReader& reader, const std::string& prefix, const WanConfig& config);

}  // namespace merope::worker
