#include "core/camera/pose_conventions.h"

namespace merope::camera {
namespace {

// Takes a vector in OpenCV camera axes to one in the given axes.
Mat3 from_opencv(CameraAxes axes) {
  Mat3 matrix = Mat3::Identity();
  switch (axes) {
    case CameraAxes::kOpenCv: break;
    case CameraAxes::kOpenGl: matrix = Vec3(1, -1, -1).asDiagonal(); break;
    case CameraAxes::kFlu: matrix << 0, 0, 1, -1, 0, 0, 0, -1, 0; break;
  }
  return matrix;
}

double metres(LengthUnit unit) {
  switch (unit) {
    case LengthUnit::kMetre: return 1;
    case LengthUnit::kCentimetre: return 0.01;
    case LengthUnit::kMillimetre: return 0.001;
  }
  return 1;
}

}  // namespace

Pose pose_from(const Matrix34& matrix, const PoseConventions& conventions) {
  Pose pose{matrix.leftCols<3>(), matrix.col(3)};
  if (conventions.direction == PoseDirection::kWorldToCamera) {
    pose = {pose.rotation.transpose(), -(pose.rotation.transpose() * pose.centre)};
  }
  return {pose.rotation * from_opencv(conventions.axes), pose.centre * metres(conventions.unit)};
}

}  // namespace merope::camera
