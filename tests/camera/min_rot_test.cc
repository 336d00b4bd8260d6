#include "core/camera/min_rot.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>
#include <Eigen/LU>

#include "tests/camera/random_geometry.h"

namespace merope::camera {
namespace {

constexpr double kPi = std::numbers::pi;

// A direction at an angle from -e_z, on a given side.
Vec3 near_pole(double angle_rad, double azimuth_rad) {
  return {std::sin(angle_rad) * std::cos(azimuth_rad), std::sin(angle_rad) * std::sin(azimuth_rad), -std::cos(angle_rad)};
}

TEST(MinRot, CarriesOpticalAxisOntoRay) {
  RandomGeometry random(20);
  for (int i = 0; i < 1000; ++i) {
    const Vec3 ray = random.direction();
    const Mat3 frame = min_rot(ray);
    EXPECT_LT((frame.col(2) - ray).norm(), 1e-12) << random.trace();
    EXPECT_LT(orthonormality_error(frame), 1e-12) << random.trace();
    EXPECT_GT(frame.determinant(), 0) << random.trace();
  }
}

TEST(MinRot, IsTheSmallestRotation) {
  RandomGeometry random(21);
  for (int i = 0; i < 200; ++i) {
    const Vec3 ray = random.direction();
    const Vec3 axis = Vec3(-ray.y(), ray.x(), 0).normalized();
    EXPECT_LT((min_rot(ray) - rotation_about(axis, std::acos(ray.z()))).norm(), 1e-7) << random.trace();
  }
}

TEST(MinRot, GoldenFrame) {
  Mat3 expected;
  expected << 0.958960601, 0.027359599, 0.282216261, 0.027359599, 0.981760267, -0.188144174, -0.282216261, 0.188144174,
      0.940720868;
  EXPECT_LT((min_rot(Vec3(0.3, -0.2, 1).normalized()) - expected).cwiseAbs().maxCoeff(), 1e-9);
}

TEST(MinRot, OpticalAxisGivesTheIdentity) {
  EXPECT_EQ(min_rot(Vec3::UnitZ()), Mat3::Identity());
}

// Where 1/(1 + dz) would lose everything: down to the limit of the fallback the frame is as good as anywhere else.
TEST(MinRot, StaysAccurateUpToThePole) {
  RandomGeometry random(22);
  for (const double angle_rad : {0.1, 0.03, 0.01, 1e-3, 1e-4, 2e-5}) {
    for (int i = 0; i < 100; ++i) {
      const Vec3 ray = near_pole(angle_rad, random.uniform(0, 2 * kPi));
      const Mat3 frame = min_rot(ray);
      // The ray itself is unit only to 1e-16, which an angle of 2e-5 amplifies in the xy block.
      EXPECT_LT(orthonormality_error(frame), 1e-10) << angle_rad << ", " << random.trace();
      EXPECT_LT((frame.col(2) - ray).norm(), 1e-12) << angle_rad << ", " << random.trace();
    }
  }
}

TEST(MinRot, FallsBackToTheNamedHalfTurnAtThePole) {
  for (const PoleFallback fallback : {PoleFallback::kHalfTurnAboutY, PoleFallback::kHalfTurnAboutX}) {
    const PoleRule rule{1e-12, fallback};
    const Mat3 at_pole = min_rot(-Vec3::UnitZ(), rule);
    EXPECT_EQ(at_pole, Mat3(pole_diagonal(fallback).asDiagonal()));
    EXPECT_EQ(at_pole.determinant(), 1);
    const Vec3 close = near_pole(0.9e-6, 0.3);
    EXPECT_EQ(min_rot(close, rule), at_pole);
    EXPECT_LT((at_pole.col(2) - close).norm(), 1e-6);
    EXPECT_NE(min_rot(near_pole(1.1e-6, 0.3), rule), at_pole);
  }
}

// The fallback is the limit of a sideways drift (about y) or of an up and down drift (about x), from both sides.
TEST(MinRot, FallbackIsTheLimitOfItsDrift) {
  const struct {
    PoleFallback fallback;
    double azimuth_rad;
  } kCases[] = {{PoleFallback::kHalfTurnAboutY, 0},
                {PoleFallback::kHalfTurnAboutY, kPi},
                {PoleFallback::kHalfTurnAboutX, kPi / 2},
                {PoleFallback::kHalfTurnAboutX, -kPi / 2}};
  for (const auto& c : kCases) {
    const Mat3 beside = min_rot(near_pole(1e-4, c.azimuth_rad));
    EXPECT_LT((beside - Mat3(pole_diagonal(c.fallback).asDiagonal())).norm(), 1e-3);
  }
}

}  // namespace
}  // namespace merope::camera
