// The one place where poses in other people's conventions become ours: camera-to-world, OpenCV axes, metres.
#pragma once

#include <array>
#include <string_view>

#include <Eigen/Core>

#include "core/camera/pose.h"

namespace merope::camera {

enum class PoseDirection { kCameraToWorld, kWorldToCamera };
enum class CameraAxes {
  kOpenCv,  // x right, y down, z forward
  kOpenGl,  // x right, y up, z backward (Blender, NeRF)
  kFlu,     // x forward, y left, z up (ROS body, ISO 8855)
};
enum class LengthUnit { kMetre, kCentimetre, kMillimetre };

struct PoseConventions {
  PoseDirection direction = PoseDirection::kCameraToWorld;
  CameraAxes axes = CameraAxes::kOpenCv;
  LengthUnit unit = LengthUnit::kMetre;
};

using Matrix34 = Eigen::Matrix<double, 3, 4>;  // [R | t]

// The axes of the camera change, those of the world stay. A faulty rotation stays as faulty as it was: validate() sees it.
Pose pose_from(const Matrix34& matrix, const PoseConventions& conventions);

// Names in files, in the order of the enumerators.
constexpr std::array<std::string_view, 2> kPoseDirectionNames = {"camera_to_world", "world_to_camera"};
constexpr std::array<std::string_view, 3> kCameraAxesNames = {"opencv", "opengl", "flu"};
constexpr std::array<std::string_view, 3> kLengthUnitNames = {"metre", "centimetre", "millimetre"};

}  // namespace merope::camera
