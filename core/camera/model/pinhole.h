// u = fx x/z + cx, v = fy y/z + cy.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <Eigen/Core>

#include "core/base/error.h"

namespace merope::camera {

struct Pinhole {
  static constexpr std::string_view kName = "pinhole";

  double fx = 0;  // pixels, > 0
  double fy = 0;
  double cx = 0;
  double cy = 0;

  bool operator==(const Pinhole&) const = default;
};

// What lens.h dispatches to; every lens has these four.
std::optional<Eigen::Vector3d> unproject(const Pinhole& lens, const Eigen::Vector2d& pixel);
std::optional<Eigen::Vector2d> project(const Pinhole& lens, const Eigen::Vector3d& point);
// Field paths relative to the lens ("fx"); width and height of the picture in pixels.
std::vector<FieldViolation> validate(const Pinhole& lens, int width, int height);
Pinhole rescaled(const Pinhole& lens, double scale_x, double scale_y);

}  // namespace merope::camera
