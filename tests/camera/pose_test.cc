#include "core/camera/pose.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <Eigen/LU>

#include "tests/camera/random_geometry.h"

namespace merope::camera {
namespace {

TEST(Pose, RelativePoseSendsKeyPointsToTheQueryFrame) {
  RandomGeometry random(1);
  for (int i = 0; i < 100; ++i) {
    const Pose query = random.pose(50);
    const Pose key = random.pose(50);
    const Vec3 in_key = random.vector(10);
    const Pose relative = relative_pose(query, key);
    const Vec3 world = key.rotation * in_key + key.centre;
    const Vec3 in_query = query.rotation.transpose() * (world - query.centre);
    EXPECT_LT((relative.rotation * in_key + relative.centre - in_query).norm(), 1e-12) << random.trace();
  }
}

TEST(Pose, OrthonormalityErrorIsTheLargestEntry) {
  EXPECT_EQ(orthonormality_error(Mat3::Identity()), 0);
  EXPECT_NEAR(orthonormality_error(1.1 * Mat3::Identity()), 0.21, 1e-12);
  Mat3 skewed = Mat3::Identity();
  skewed(0, 1) = -0.3;
  EXPECT_NEAR(orthonormality_error(skewed), 0.3, 1e-12);
}

TEST(Pose, NearestRotationOfARotationIsItself) {
  RandomGeometry random(2);
  for (int i = 0; i < 50; ++i) {
    const Mat3 rotation = random.rotation();
    EXPECT_LT((nearest_rotation(rotation) - rotation).norm(), 1e-13) << random.trace();
  }
}

// A small disturbance is undone; no other rotation close by is nearer.
TEST(Pose, NearestRotationIsNearest) {
  RandomGeometry random(3);
  for (int i = 0; i < 50; ++i) {
    Mat3 matrix = random.rotation();
    for (double& value : matrix.reshaped()) {
      value += random.uniform(-0.05, 0.05);
    }
    const Mat3 nearest = nearest_rotation(matrix);
    EXPECT_LT(orthonormality_error(nearest), 1e-13);
    EXPECT_NEAR(nearest.determinant(), 1, 1e-12);
    for (int k = 0; k < 20; ++k) {
      const Mat3 other = nearest * rotation_about(random.direction(), random.uniform(-0.1, 0.1));
      EXPECT_GE((matrix - other).norm(), (matrix - nearest).norm() - 1e-12) << random.trace();
    }
  }
}

TEST(Pose, NearestRotationOfAMirrorIsRightHanded) {
  Mat3 mirror = Mat3::Identity();
  mirror(2, 2) = -1;
  EXPECT_NEAR(nearest_rotation(mirror).determinant(), 1, 1e-12);
}

}  // namespace
}  // namespace merope::camera
