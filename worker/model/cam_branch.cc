#include "worker/model/cam_branch.h"

#include <ATen/ATen.h>

#include "worker/model/self_attention.h"

namespace merope::worker {

at::Tensor CamBranch::operator()(const at::Tensor& x, const CameraAttention& camera, const Probe& probe) const {
  const at::Tensor attended =
      camera.attend(split_heads(to_q(x), n_heads), split_heads(to_k(x), n_heads), split_heads(to_v(x), n_heads));
  const at::Tensor out = to_out(attended.flatten(-2));
  probe("out", out);
  return out;
}

CamBranch read_cam_branch(WeightReader& reader,
                          const std::string& prefix,
                          std::int64_t dim,
                          const CameraBranchConfig& config) {
  const std::int64_t a = config.width();
  return {read_linear(reader, prefix + ".to_q", dim, a),
          read_linear(reader, prefix + ".to_k", dim, a),
          read_linear(reader, prefix + ".to_v", dim, a),
          read_linear(reader, prefix + ".to_out", a, dim),
          config.n_heads};
}

std::int64_t cam_branch_parameters(std::int64_t dim, const CameraBranchConfig& config) {
  const std::int64_t a = config.width();
  return 3 * (a * dim + a) + dim * a + dim;
}

}  // namespace merope::worker
