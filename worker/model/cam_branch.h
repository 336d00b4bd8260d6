// The camera branch (CamSA): a narrow self-attention beside a block's own, whose queries, keys and values are moved by the
// camera encoding. Its output projection starts at zero, so a fresh branch leaves the model as it is.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/model/kernels_bridge.h"
#include "worker/model/linear.h"
#include "worker/model/probe.h"
#include "worker/model/wan_config.h"

namespace merope::worker {

// No norm on q and k; the softmax scale is 1/sqrt(head_dim). Width a = heads * head_dim.
struct CamBranch {
  Linear to_q, to_k, to_v;  // d -> a
  Linear to_out;            // a -> d
  std::int64_t n_heads = 0;

  // x: [B, S, d], the block's modulated self-attention input. Returns [B, S, d], to be added to the self-attention's output
  // before the gate.
  at::Tensor operator()(const at::Tensor& x, const CameraAttention& camera, const Probe& probe) const;
};

// `prefix`.to_q, to_k, to_v and to_out, each with weight and bias.
CamBranch read_cam_branch(WeightReader& reader,
                          const std::string& prefix,
                          std::int64_t dim,
                          const CameraBranchConfig& config);

// Weights and biases of one branch: 4 a d + 3 a + d.
std::int64_t cam_branch_parameters(std::int64_t dim, const CameraBranchConfig& config);

}  // namespace merope::worker
