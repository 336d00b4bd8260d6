// u = fx x/z + cx, v = fy y/z + cy.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include <Eigen/Core>

#include "core/base/error.h"

namespace merope::camera {

// A parameter of a lens by its name in files.
template <typename Model>
struct LensParameter {
  std::string_view name;
  double Model::*member;
};

struct Pinhole {
  static constexpr std::string_view kName = "pinhole";

  double fx = 0;  // pixels, > 0
  double fy = 0;
  double cx = 0;
  double cy = 0;

  static constexpr std::array<LensParameter<Pinhole>, 4> parameters() {
    return {{{"fx", &Pinhole::fx}, {"fy", &Pinhole::fy}, {"cx", &Pinhole::cx}, {"cy", &Pinhole::cy}}};
  }
  bool operator==(const Pinhole&) const = default;
};

// Square pixels and the principal point in the middle. The field of view is that of the width, in radians, below pi.
Pinhole pinhole_from_fov(int width, int height, double horizontal_fov_rad);

// What lens.h dispatches to; every lens has these four.
std::optional<Eigen::Vector3d> unproject(const Pinhole& lens, const Eigen::Vector2d& pixel);
std::optional<Eigen::Vector2d> project(const Pinhole& lens, const Eigen::Vector3d& point);
// Field paths relative to the lens ("fx"); width and height of the picture in pixels.
std::vector<FieldViolation> validate(const Pinhole& lens, int width, int height);
Pinhole rescaled(const Pinhole& lens, double scale_x, double scale_y);

}  // namespace merope::camera
