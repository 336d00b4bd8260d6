// Poses as this project uses them: camera-to-world, OpenCV axes (x right, y down, z forward), metres, double precision.
#pragma once

#include <Eigen/Core>

namespace merope::camera {

using Vec3 = Eigen::Vector3d;
using Mat3 = Eigen::Matrix3d;

// X_world = rotation * X_camera + centre.
struct Pose {
  Mat3 rotation = Mat3::Identity();
  Vec3 centre = Vec3::Zero();  // optical centre in the world, metres
};

// R_ij = R_i^T R_j and Delta_ij = R_i^T (o_j - o_i): camera `key` seen from camera `query` (MeRoPE Eq. 2).
Pose relative_pose(const Pose& query, const Pose& key);

// Largest absolute entry of R^T R - I.
double orthonormality_error(const Mat3& rotation);

// The rotation nearest to a matrix in the Frobenius norm.
Mat3 nearest_rotation(const Mat3& matrix);

}  // namespace merope::camera
