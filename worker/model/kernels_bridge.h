// Where tensors meet the kernels: attention under a camera encoding.
#pragma once

#include <ATen/core/Tensor.h>

namespace merope::worker {

// Attention of a clip's tokens under the encoding of its cameras: y_a = sum_b softmax_b(q_a^T U_ab k_b / sqrt(D)) U_ab v_b
// (MeRoPE Eq. 1). Built once per job from the encoding's tables; shared by all blocks, steps and samples.
class CameraAttention {
 public:
  virtual ~CameraAttention() = default;
  // q, k, v: [B, S, heads, D] of one dtype; returns the same shape.
  virtual at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const = 0;
};

}  // namespace merope::worker
