#include "kernels/cam_attention.h"

namespace merope::kernels {

CanRun check_args(const CamAttentionArgs& args) {
  const CamPartition& p = args.partition;
  const CamTables& t = args.tables;
  if (args.n_tokens < 1 || args.n_heads < 1 || p.head_dim() < 1) {
    return {"cam_attention: no tokens, heads or channels"};
  }
  if (args.q == nullptr || args.k == nullptr || args.v == nullptr || args.o == nullptr) {
    return {"cam_attention: q, k, v or o is missing"};
  }
  if (p.disparity < 0 || p.rotation < 0 || p.translation < 0 || p.native_time < 0 || p.native_1 < 0 || p.native_2 < 0) {
    return {"cam_attention: a part of the head is negative"};
  }
  if (p.disparity % 3 != 0 || p.rotation % 3 != 0 || p.translation % 6 != 0) {
    return {"cam_attention: disparity or rotation is not whole triplets, or translation is not three axes of pairs"};
  }
  if (p.native_time % 2 != 0 || p.native_1 % 2 != 0 || p.native_2 % 2 != 0) {
    return {"cam_attention: native is not whole pairs"};
  }
  if (t.n_cameras < 1 || t.camera_begin == nullptr || t.camera_begin[0] != 0 ||
      t.camera_begin[t.n_cameras] != args.n_tokens) {
    return {"cam_attention: camera_begin does not run from 0 to n_tokens"};
  }
  for (int i = 0; i < t.n_cameras; ++i) {
    if (t.camera_begin[i] >= t.camera_begin[i + 1]) {
      return {"cam_attention: a camera has no tokens"};
    }
  }
  if (p.disparity > 0 && t.disparity_on) {
    if (t.n_anchors < 1 || p.disparity % (3 * t.n_anchors) != 0) {
      return {"cam_attention: disparity is not whole triplets per anchor"};
    }
    if (t.rho == nullptr || t.token_frame == nullptr || t.arcs == nullptr) {
      return {"cam_attention: a table of the disparity part is missing"};
    }
  }
  if (p.rotation > 0 && t.rotation_on && t.ray_frame == nullptr) {
    return {"cam_attention: the table of the rotation part is missing"};
  }
  if (p.translation > 0 && t.translation_on && (t.trans_cos == nullptr || t.trans_sin == nullptr)) {
    return {"cam_attention: a table of the translation part is missing"};
  }
  if (p.native() > 0 && t.native_on && (t.native_cos == nullptr || t.native_sin == nullptr)) {
    return {"cam_attention: a table of the native part is missing"};
  }
  return {};
}

}  // namespace merope::kernels
