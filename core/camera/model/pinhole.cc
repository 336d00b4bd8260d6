#include "core/camera/model/pinhole.h"

#include <cmath>

#include "core/camera/internal/number_text.h"

namespace merope::camera {
namespace {

void require_positive(const char* field, double value, std::vector<FieldViolation>& violations) {
  if (!std::isfinite(value)) {
    violations.push_back({field, internal::shortest(value) + " is not finite"});
  } else if (value <= 0) {
    violations.push_back({field, internal::shortest(value) + " is not positive"});
  }
}

void require_inside(const char* field, double value, int size, std::vector<FieldViolation>& violations) {
  if (!std::isfinite(value)) {
    violations.push_back({field, internal::shortest(value) + " is not finite"});
  } else if (value < 0 || value > size) {
    violations.push_back({field, internal::shortest(value) + " is outside the picture (0 to " + std::to_string(size) + ")"});
  }
}

}  // namespace

Pinhole pinhole_from_fov(int width, int height, double horizontal_fov_rad) {
  const double focal = 0.5 * width / std::tan(0.5 * horizontal_fov_rad);
  return {focal, focal, 0.5 * width, 0.5 * height};
}

std::optional<Eigen::Vector3d> unproject(const Pinhole& lens, const Eigen::Vector2d& pixel) {
  return Eigen::Vector3d((pixel.x() - lens.cx) / lens.fx, (pixel.y() - lens.cy) / lens.fy, 1).normalized();
}

std::optional<Eigen::Vector2d> project(const Pinhole& lens, const Eigen::Vector3d& point) {
  if (point.z() <= 0) {
    return std::nullopt;
  }
  return Eigen::Vector2d(lens.fx * point.x() / point.z() + lens.cx, lens.fy * point.y() / point.z() + lens.cy);
}

std::vector<FieldViolation> validate(const Pinhole& lens, int width, int height) {
  std::vector<FieldViolation> violations;
  require_positive("fx", lens.fx, violations);
  require_positive("fy", lens.fy, violations);
  require_inside("cx", lens.cx, width, violations);
  require_inside("cy", lens.cy, height, violations);
  return violations;
}

Pinhole rescaled(const Pinhole& lens, double scale_x, double scale_y) {
  return {lens.fx * scale_x, lens.fy * scale_y, lens.cx * scale_x, lens.cy * scale_y};
}

}  // namespace merope::camera
