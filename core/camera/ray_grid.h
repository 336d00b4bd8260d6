// The viewing rays of a camera's patch tokens.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/camera/model/lens.h"

namespace merope::camera {

// Tokens of one camera, row by row: index = row * columns + column.
struct TokenGrid {
  int rows = 0;
  int columns = 0;

  int size() const { return rows * columns; }
};

// Where in the square of pixels that a token covers its ray goes through. kCorner, the upper left corner, is for weights
// that were trained with it.
enum class TokenCentre { kMiddle, kCorner };

// What stands in for a token whose pixel lies outside the lens: the ray at 0.999 of the way from the middle of the picture
// to the edge of the lens, towards that pixel, or the optical axis.
enum class InvalidRayPolicy { kClamp, kForward };

struct RayGrid {
  std::vector<Vec3> rays_c;  // [rows * columns], unit, camera frame
  int n_invalid = 0;         // tokens outside the lens, for the job's log
};

// Token (x, y) looks through pixel ((x + 0.5) width / columns, (y + 0.5) height / rows) of the lens's picture.
RayGrid ray_grid(const Lens& lens, const TokenGrid& grid, TokenCentre centre, InvalidRayPolicy policy);

// One ray of it, for any unprojection. `valid` becomes false when the policy had to act; middle must lie inside the lens.
Vec3 ray_or_substitute(const std::function<std::optional<Vec3>(const Vec2&)>& unproject,
                       const Vec2& pixel,
                       const Vec2& middle,
                       InvalidRayPolicy policy,
                       bool& valid);

}  // namespace merope::camera
