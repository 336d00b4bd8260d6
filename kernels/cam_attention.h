// Camera attention: softmax attention whose keys and values are seen from the query's camera (MeRoPE Eq. 1 and 11).
//
//   s_ab = scale * q_a^T U_ab k_b,   o_a = sum_b softmax_b(s_ab) U_ab v_b
//
// U_ab is never stored. Its rotation and native parts factor per token; its disparity and translation parts depend on (query
// camera, key token) and are rebuilt from small tables while a tile of keys and values is in cache. All rows attend to all
// columns; there is no mask.
//
// q, k, v, o: [n_tokens, n_heads, head_dim] float, row-major; o may not overlap the others.
#pragma once

#include <cstddef>

#include "kernels/parallel_for.h"

namespace merope::kernels {

// Channels of a head, in this order. Their sum is head_dim.
struct CamPartition {
  int disparity = 0;    // n_anchors * copies * 3: (anchor, copy, axis)
  int rotation = 0;     // copies * 3: (copy, axis)
  int translation = 0;  // 3 axes * n_wavelengths pairs
  int native_time = 0;  // pairs
  int native_1 = 0;     // pairs along the first image axis
  int native_2 = 0;     // pairs along the second image axis

  int native() const { return native_time + native_1 + native_2; }
  int head_dim() const { return disparity + rotation + translation + native(); }
};

// Pair m of a band of n channels: (2m, 2m + 1), or (m, m + n/2). A band is one axis of the translation part or one of the
// three stretches of the native part.
enum class CamPairLayout { kAdjacent, kSplitHalf };

// The geometry, all float; camera::EncodingTables holds arrays of the same names and shapes.
struct CamTables {
  int n_cameras = 0;
  int n_anchors = 0;
  const int* camera_begin = nullptr;   // [n_cameras + 1], first token of each camera; ends with n_tokens
  const float* rho = nullptr;          // [n_anchors], in [0, 1]
  const float* token_frame = nullptr;  // [n_tokens, 3, 3]
  const float* ray_frame = nullptr;    // [n_tokens, 3, 3]
  const float* native_cos = nullptr;   // [n_tokens, native / 2]
  const float* native_sin = nullptr;
  const float* trans_cos = nullptr;  // [query camera, key camera, translation / 2]
  const float* trans_sin = nullptr;
  const float* arcs = nullptr;  // [query camera, n_tokens, 7]: u_inf, t_hat, beta_max (rad)

  // Frame of an anchor within sqrt(eps_pole) of -e_z: diag(pole_diagonal).
  float eps_pole = 1e-10F;
  float pole_diagonal[3] = {-1, 1, -1};

  // A part that is off is the identity on its channels.
  bool disparity_on = true;
  bool rotation_on = true;
  bool translation_on = true;
  bool native_on = true;
};

struct CamAttentionArgs {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  float* o = nullptr;
  int n_tokens = 0;
  int n_heads = 0;
  float scale = 0;  // 1 / sqrt(head_dim)
  CamPartition partition;
  CamPairLayout pair_layout = CamPairLayout::kAdjacent;
  CamTables tables;
};

// Yes, or a sentence why not.
struct CanRun {
  const char* reason = nullptr;
  explicit operator bool() const { return reason == nullptr; }
};

// One backend's version of the operation. Calling run() where can_run() says no is undefined.
struct CamAttentionKernel {
  CanRun (*can_run)(const CamAttentionArgs& args);
  // Scratch memory that run() needs, 64-byte aligned, contents irrelevant.
  std::size_t (*workspace_bytes)(const CamAttentionArgs& args, int n_threads);
  // The result does not depend on the number of threads, to the last bit.
  void (*run)(const CamAttentionArgs& args, void* workspace, ParallelFor& parallel);
};

// What every backend asks for: sizes that fit together, no missing table.
CanRun check_args(const CamAttentionArgs& args);

}  // namespace merope::kernels
