// What attention needs to know about cameras, as plain float arrays: computed once per job in double, shared by all heads,
// layers, denoising steps and guidance branches.
//
// A "camera" is a pose and a lens: one latent frame of one view. Tokens of one camera are consecutive. All arrays are
// row-major with the last index fastest; a 3x3 matrix is nine numbers row by row.
#pragma once

#include <vector>

#include "core/camera/encoding/encoding_config.h"

namespace merope::camera {

struct EncodingTables {
  // Numbers of one arc in `arcs`.
  static constexpr int kArcSize = 7;

  EncodingConfig config;  // what the tables were made with: partition, rho, pole rule, pair layout, parts that are on

  int n_cameras = 0;
  int n_tokens = 0;
  std::vector<int> camera_begin;  // [n_cameras + 1]: camera i has tokens camera_begin[i] .. camera_begin[i + 1] - 1
  std::vector<float> rho;         // [n_anchors]

  // Frame of a token's ray in its own camera, A(d): query side of the disparity part.
  std::vector<float> token_frame;  // [n_tokens, 3, 3]
  // The same in the world, R_i A(d): both sides of the rotation part.
  std::vector<float> ray_frame;  // [n_tokens, 3, 3]
  // Angles of the native part, f_m * position: pairs for time, then the image axes in the order of config.native_order.
  std::vector<float> native_cos;  // [n_tokens, native / 2]
  std::vector<float> native_sin;
  // Angles of the translation part, omega_k * Delta_ij: axis * n_wavelengths + k.
  std::vector<float> trans_cos;  // [query camera, key camera, translation / 2]
  std::vector<float> trans_sin;
  // Arc of a key token in a query camera's frame: u_inf (3), t_hat (3), beta_max (rad). The anchor at rho lies at
  // cos(rho beta_max) u_inf + sin(rho beta_max) t_hat. Collapsed arcs have t_hat = 0 and beta_max = 0.
  std::vector<float> arcs;  // [query camera, n_tokens, 7]

  int n_invalid_rays = 0;  // tokens outside their lens that got a substitute ray
};

}  // namespace merope::camera
