// Where tensors meet the kernels: attention under a camera encoding.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string_view>

#include "core/camera/encoding/encoding_tables.h"
#include "kernels/kernel_table.h"
#include "kernels/parallel_for.h"

namespace merope::worker {

// Attention of a clip's tokens under the encoding of its cameras: y_a = sum_b softmax_b(q_a^T U_ab k_b / sqrt(D)) U_ab v_b
// (MeRoPE Eq. 1). Built once per job from the encoding's tables; shared by all blocks, steps and samples. One thread at a
// time.
class CameraAttention {
 public:
  virtual ~CameraAttention() = default;
  // q, k, v: [B, S, heads, D] of one dtype; returns the same shape.
  virtual at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const = 0;
};

// What runs the kernels on the CPU: a backend of kernels/dispatch.h and threads. Both must outlive what is made with them.
struct CpuKernels {
  const kernels::KernelTable* table = nullptr;
  kernels::ParallelFor* threads = nullptr;
};

// fp32 on the CPU runs the grouped kernel of `cpu`; every other device and dtype, and tensors that ask for gradients, run
// the tensor operations of cam_attention_folded.h.
std::unique_ptr<CameraAttention> make_camera_attention(camera::EncodingTables tables,
                                                       at::Device device,
                                                       const CpuKernels& cpu);

}  // namespace merope::worker
