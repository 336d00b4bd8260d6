// Camera attention as tensor operations: any device, any dtype, differentiable.
//
// Query cameras are folded into the batch: for each of them keys and values are moved into its frame, and one ordinary
// scaled-dot-product attention follows. Exact, at the price of a copy of keys and values per query camera; cameras are taken
// in chunks to bound it. The grouped kernel (kernels/cam_attention.h) computes the same without the copies.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/camera/encoding/encoding_tables.h"
#include "worker/model/kernels_bridge.h"

namespace merope::worker {

class FoldedCameraAttention final : public CameraAttention {
 public:
  // expanded_bytes: how much the moved keys and values of one chunk may take together (at least one camera is taken).
  FoldedCameraAttention(const camera::EncodingTables& tables, at::Device device, std::size_t expanded_bytes);

  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const override;

 private:
  at::Tensor query_side(const at::Tensor& q) const;
  at::Tensor output_side(const at::Tensor& o) const;
  // What does not depend on the query camera.
  at::Tensor key_side(const at::Tensor& kv) const;
  // The rest for query cameras [begin, end): [B, N, heads, D] -> [B, end - begin, N, heads, D].
  at::Tensor seen_from(const at::Tensor& kv, std::int64_t begin, std::int64_t end) const;
  at::Tensor anchor_frames(std::int64_t begin, std::int64_t end) const;
  at::Tensor rotate_native(const at::Tensor& x, double direction) const;

  camera::EncodingConfig config_;
  std::vector<int> camera_begin_;
  std::size_t expanded_bytes_;
  // fp32, shapes as in EncodingTables.
  at::Tensor rho_, token_frame_, ray_frame_, native_cos_, native_sin_, trans_cos_, trans_sin_, arcs_, pole_frame_;
};

}  // namespace merope::worker
