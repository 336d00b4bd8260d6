#include "core/camera/min_rot.h"

namespace merope::camera {

Vec3 pole_diagonal(PoleFallback fallback) {
  return fallback == PoleFallback::kHalfTurnAboutY ? Vec3(-1, 1, -1) : Vec3(1, -1, -1);
}

Mat3 min_rot(const Vec3& ray_c, const PoleRule& pole) {
  const double x = ray_c.x();
  const double y = ray_c.y();
  const double z = ray_c.z();
  const double off_axis = x * x + y * y;
  if (z < 0 && off_axis <= pole.eps) {
    return pole_diagonal(pole.fallback).asDiagonal();
  }
  const double k = z >= 0 ? 1 / (1 + z) : (1 - z) / off_axis;
  Mat3 frame;
  frame << 1 - x * x * k, -x * y * k, x,  //
      -x * y * k, 1 - y * y * k, y,       //
      -x, -y, z;
  return frame;
}

}  // namespace merope::camera
