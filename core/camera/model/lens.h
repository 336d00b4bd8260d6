// A lens: which ray a pixel looks along. Pixel coordinates have their origin at the upper left corner of the upper left
// pixel.
//
// A new model is a file beside pinhole.h with a struct (kName, parameters(), ==) and the same four functions, and one more
// alternative in the variant below, which is the registry: everything here dispatches over it.
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include <Eigen/Core>

#include "core/base/error.h"
#include "core/camera/model/pinhole.h"
#include "core/camera/pose.h"

namespace merope::camera {

using Vec2 = Eigen::Vector2d;

struct Lens {
  int width = 0;  // picture that the parameters refer to, pixels
  int height = 0;
  std::variant<Pinhole> model;

  bool operator==(const Lens&) const = default;
};

// Sides of a picture that a lens may refer to, pixels.
constexpr int kMaxPictureSide = 65536;

// "pinhole": the name in capabilities and files.
std::string_view model_name(const Lens& lens);
// All names that this build knows, in the order of the variant.
std::vector<std::string_view> camera_model_names();

// Unit viewing direction of a pixel in the camera frame; empty outside the lens's domain.
std::optional<Vec3> unproject(const Lens& lens, const Vec2& pixel);
// Pixel of a point in the camera frame (any length); empty where the lens does not see it.
std::optional<Vec2> project(const Lens& lens, const Vec3& point);

// What is wrong with the parameters, field paths relative to the lens ("pinhole.fx").
std::vector<FieldViolation> validate(const Lens& lens);

// The same lens for a picture of another size: every pixel quantity is scaled.
Lens rescaled(const Lens& lens, int width, int height);

}  // namespace merope::camera
