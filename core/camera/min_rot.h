// The smallest rotation that carries the optical axis to a ray: the ray's local frame (MeRoPE Eq. 5).
#pragma once

#include "core/camera/pose.h"

namespace merope::camera {

// At the ray -e_z the smallest rotation is not unique. Any half turn about an axis of the image plane is one; which is taken
// decides for which drift of the camera the frame is smooth there. About y (default): sideways drift, which a road vehicle
// has more of. About x: drift up and down.
enum class PoleFallback { kHalfTurnAboutY, kHalfTurnAboutX };

struct PoleRule {
  // The fallback is used where dz < 0 and dx^2 + dy^2 <= eps: within 10 microradians of -e_z. One value for the double
  // oracle and the float kernels: between two different ones they would disagree by a roll.
  double eps = 1e-10;
  PoleFallback fallback = PoleFallback::kHalfTurnAboutY;

  bool operator==(const PoleRule&) const = default;
};

// A with A e_z = ray_c, rotation axis in the xy-plane. ray_c must be unit. Accurate in every direction: behind the camera
// 1/(1 + dz) is evaluated as (1 - dz)/(dx^2 + dy^2), which does not cancel.
Mat3 min_rot(const Vec3& ray_c, const PoleRule& pole = {});

// diag(-1, 1, -1) or diag(1, -1, -1).
Vec3 pole_diagonal(PoleFallback fallback);

}  // namespace merope::camera
