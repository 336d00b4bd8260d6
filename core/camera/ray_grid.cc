#include "core/camera/ray_grid.h"

namespace merope::camera {
namespace {

constexpr double kClampFraction = 0.999;  // of the way to the edge of the lens

}  // namespace

Vec3 ray_or_substitute(const std::function<std::optional<Vec3>(const Vec2&)>& unproject,
                       const Vec2& pixel,
                       const Vec2& middle,
                       InvalidRayPolicy policy,
                       bool& valid) {
  const std::optional<Vec3> ray = unproject(pixel);
  valid = ray.has_value();
  if (valid) {
    return *ray;
  }
  if (policy == InvalidRayPolicy::kForward) {
    return Vec3(0, 0, 1);
  }
  // The edge lies between the middle, which is inside, and the pixel: halve until it is known to 1e-12 of the distance.
  double inside = 0;
  double outside = 1;
  for (int i = 0; i < 40; ++i) {
    const double fraction = 0.5 * (inside + outside);
    (unproject(middle + fraction * (pixel - middle)) ? inside : outside) = fraction;
  }
  const std::optional<Vec3> substitute = unproject(middle + kClampFraction * inside * (pixel - middle));
  return substitute.value_or(Vec3(0, 0, 1));
}

RayGrid ray_grid(const Lens& lens, const TokenGrid& grid, TokenCentre centre, InvalidRayPolicy policy) {
  const double offset = centre == TokenCentre::kMiddle ? 0.5 : 0.0;
  const Vec2 middle(0.5 * lens.width, 0.5 * lens.height);
  const auto unproject_pixel = [&](const Vec2& pixel) { return unproject(lens, pixel); };
  RayGrid result;
  result.rays_c.reserve(static_cast<std::size_t>(grid.size()));
  for (int row = 0; row < grid.rows; ++row) {
    for (int column = 0; column < grid.columns; ++column) {
      const Vec2 pixel((column + offset) * lens.width / grid.columns, (row + offset) * lens.height / grid.rows);
      bool valid = true;
      result.rays_c.push_back(ray_or_substitute(unproject_pixel, pixel, middle, policy, valid));
      result.n_invalid += valid ? 0 : 1;
    }
  }
  return result;
}

}  // namespace merope::camera
