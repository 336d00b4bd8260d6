// Where a token of the key camera can appear in the query camera, whatever its depth: the arc from its direction at infinity
// to the epipole (MeRoPE Eq. 9).
#pragma once

#include "core/camera/pose.h"

namespace merope::camera {

struct ArcRule {
  double min_baseline_m = 1e-4;  // centres nearer than this count as one
  double eps_parallel = 1e-6;    // |u_inf x epipole| up to here counts as parallel or antiparallel
};

// All in the query camera's frame. Where the arc is not defined (coincident centres) or its azimuth is not (epipole parallel
// or antiparallel to the ray) it collapses: t_hat = 0 and beta_max_rad = 0, so that every anchor is u_inf.
struct EpipolarArc {
  Vec3 u_inf = Vec3::UnitZ();  // direction of the key's ray at infinite depth, unit
  Vec3 t_hat = Vec3::Zero();   // unit tangent at u_inf, towards the epipole
  double beta_max_rad = 0;     // from u_inf to the epipole, 0 to pi
};

// delta_o: the key camera's centre seen from the query camera, metres.
EpipolarArc epipolar_arc(const Vec3& u_inf, const Vec3& delta_o, const ArcRule& rule);

// The anchor at disparity fraction rho: 0 is infinity, 1 the epipole. It is where a point at depth
// |delta_o| sin(beta_max - rho beta_max) / sin(rho beta_max) along the key's ray appears.
Vec3 anchor_direction(const EpipolarArc& arc, double rho);

}  // namespace merope::camera
