#include "core/camera/epipolar_arc.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "core/camera/encoding/encoding_config.h"
#include "tests/camera/random_geometry.h"

namespace merope::camera {
namespace {

const std::vector<double> kRho = EncodingConfig().rho;

double angle(const Vec3& a, const Vec3& b) {
  return 2 * std::atan2((a - b).norm(), (a + b).norm());
}

// T8: the ends of the arc, unit anchors between them at growing angles.
TEST(EpipolarArc, RunsFromInfinityToTheEpipole) {
  RandomGeometry random(30);
  for (int i = 0; i < 300; ++i) {
    const Vec3 u_inf = random.direction();
    const Vec3 delta_o = random.vector(20);
    const EpipolarArc arc = epipolar_arc(u_inf, delta_o, {});
    EXPECT_LT((anchor_direction(arc, 0) - u_inf).norm(), 1e-15) << random.trace();
    EXPECT_LT((anchor_direction(arc, 1) - delta_o.normalized()).norm(), 1e-12) << random.trace();
    double before = -1;
    for (const double rho : kRho) {
      const Vec3 anchor = anchor_direction(arc, rho);
      EXPECT_NEAR(anchor.norm(), 1, 1e-14);
      EXPECT_NEAR(angle(anchor, u_inf), rho * arc.beta_max_rad, 1e-12) << random.trace();
      EXPECT_GT(angle(anchor, u_inf), before);
      before = angle(anchor, u_inf);
    }
  }
}

// T8: an anchor is where a point at its depth along the key's ray is seen.
TEST(EpipolarArc, AnchorsAreWherePointsAtTheirDepthsAppear) {
  RandomGeometry random(31);
  for (int i = 0; i < 300; ++i) {
    const Vec3 u_inf = random.direction();
    const Vec3 delta_o = random.vector(20);
    const EpipolarArc arc = epipolar_arc(u_inf, delta_o, {});
    for (const double rho : kRho) {
      if (rho > 0) {
        const double beta = rho * arc.beta_max_rad;
        const double depth_m = delta_o.norm() * std::sin(arc.beta_max_rad - beta) / std::sin(beta);
        const Vec3 seen = (delta_o + depth_m * u_inf).normalized();
        EXPECT_LT((anchor_direction(arc, rho) - seen).norm(), 1e-9) << "rho " << rho << ", " << random.trace();
      }
    }
  }
}

// T5: three cases without an arc; all anchors become the direction at infinity, to the last bit.
TEST(EpipolarArc, CollapsesWhereItIsNotDefined) {
  RandomGeometry random(32);
  for (int i = 0; i < 50; ++i) {
    const Vec3 u_inf = random.direction();
    for (const Vec3& delta_o : {Vec3(0, 0, 0), Vec3(9e-5, 0, 0), Vec3(5.0 * u_inf), Vec3(-5.0 * u_inf)}) {
      const EpipolarArc arc = epipolar_arc(u_inf, delta_o, {});
      for (const double rho : kRho) {
        EXPECT_EQ(anchor_direction(arc, rho), u_inf) << random.trace();
      }
    }
    EXPECT_GT(epipolar_arc(u_inf, Vec3(1.1e-4 * random.direction()), {}).beta_max_rad, 0);
  }
}

TEST(EpipolarArc, MinimumBaselineIsAChoice) {
  const Vec3 delta_o(0.015, 0, 0);
  EXPECT_GT(epipolar_arc(Vec3::UnitZ(), delta_o, {}).beta_max_rad, 1);
  EXPECT_EQ(epipolar_arc(Vec3::UnitZ(), delta_o, {0.02, 1e-6}).beta_max_rad, 0);
}

// Just off the antiparallel case the arc is almost half a circle: a jump by construction, finite and unit on both sides.
TEST(EpipolarArc, IsAlmostHalfACircleBesideTheAntiparallelCase) {
  const double off = 1e-5;
  const EpipolarArc arc = epipolar_arc(Vec3::UnitZ(), Vec3(off, 0, -1), {});
  EXPECT_NEAR(arc.beta_max_rad, std::numbers::pi - off, 1e-9);
  for (const double rho : kRho) {
    EXPECT_NEAR(anchor_direction(arc, rho).norm(), 1, 1e-14);
  }
}

}  // namespace
}  // namespace merope::camera
