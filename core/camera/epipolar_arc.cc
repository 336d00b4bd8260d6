#include "core/camera/epipolar_arc.h"

#include <cmath>

#include <Eigen/Geometry>

namespace merope::camera {

EpipolarArc epipolar_arc(const Vec3& u_inf, const Vec3& delta_o, const ArcRule& rule) {
  EpipolarArc arc{u_inf, Vec3::Zero(), 0};
  const double baseline_m = delta_o.norm();
  if (baseline_m <= rule.min_baseline_m) {
    return arc;
  }
  const Vec3 epipole = delta_o / baseline_m;
  const Vec3 normal = u_inf.cross(epipole);
  const double sine = normal.norm();
  if (sine <= rule.eps_parallel) {
    return arc;
  }
  arc.t_hat = normal.cross(u_inf).normalized();
  // atan2 keeps its accuracy where acos of the dot product loses it: near 0 and near pi, where driving lives.
  arc.beta_max_rad = std::atan2(sine, u_inf.dot(epipole));
  return arc;
}

Vec3 anchor_direction(const EpipolarArc& arc, double rho) {
  const double beta = rho * arc.beta_max_rad;
  return std::cos(beta) * arc.u_inf + std::sin(beta) * arc.t_hat;
}

}  // namespace merope::camera
