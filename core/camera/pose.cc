#include "core/camera/pose.h"

#include <Eigen/LU>
#include <Eigen/SVD>

namespace merope::camera {

Pose relative_pose(const Pose& query, const Pose& key) {
  // The difference comes before the rotation: world offsets of 1e6 m cancel here, in double.
  return {query.rotation.transpose() * key.rotation, query.rotation.transpose() * (key.centre - query.centre)};
}

double orthonormality_error(const Mat3& rotation) {
  return (rotation.transpose() * rotation - Mat3::Identity()).cwiseAbs().maxCoeff();
}

Mat3 nearest_rotation(const Mat3& matrix) {
  const Eigen::JacobiSVD<Mat3> svd(matrix, Eigen::ComputeFullU | Eigen::ComputeFullV);
  // Flipping the weakest axis is the cheapest way to a determinant of +1.
  const double sign = (svd.matrixU() * svd.matrixV().transpose()).determinant() < 0 ? -1.0 : 1.0;
  return svd.matrixU() * Vec3(1, 1, sign).asDiagonal() * svd.matrixV().transpose();
}

}  // namespace merope::camera
