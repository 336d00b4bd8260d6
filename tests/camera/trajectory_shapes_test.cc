#include "core/camera/trajectory_shapes.h"

#include <cmath>
#include <numbers>
#include <string>

#include <gtest/gtest.h>
#include <Eigen/LU>

namespace merope::camera {
namespace {

constexpr double kDegree = std::numbers::pi / 180;

Lens street_lens() {
  return {512, 288, pinhole_from_fov(512, 288, 70 * kDegree)};
}

std::vector<TrajectoryFrame> frames_of(std::string_view expression, int n_frames = 49) {
  Result<Trajectory> trajectory = trajectory_from_shape(expression, n_frames, 10, street_lens());
  EXPECT_TRUE(trajectory) << trajectory.error().message;
  return trajectory ? trajectory->frames : std::vector<TrajectoryFrame>(1);
}

Vec3 heading(const TrajectoryFrame& frame) {
  return frame.c2w.rotation.col(2);
}
double yaw_left_deg(const TrajectoryFrame& frame) {
  return std::atan2(-heading(frame).x(), heading(frame).z()) / kDegree;
}

TEST(TrajectoryShapes, StraightGoesForwardAtOneSpeed) {
  const auto frames = frames_of("straight:20m", 5);
  ASSERT_EQ(frames.size(), 5U);
  for (int i = 0; i < 5; ++i) {
    EXPECT_LT((frames[i].c2w.centre - Vec3(0, 0, 5.0 * i)).norm(), 1e-12);
    EXPECT_EQ(frames[i].c2w.rotation, Mat3::Identity());
    EXPECT_DOUBLE_EQ(frames[i].time_s, i / 10.0);
    EXPECT_EQ(frames[i].lens, street_lens());
  }
}

TEST(TrajectoryShapes, NegativeStraightIsBackward) {
  EXPECT_LT((frames_of("straight:-4m").back().c2w.centre - Vec3(0, 0, -4)).norm(), 1e-12);
}

TEST(TrajectoryShapes, PositiveTurnIsToTheLeft) {
  const TrajectoryFrame end = frames_of("turn:90deg").back();
  EXPECT_NEAR(yaw_left_deg(end), 90, 1e-9);
  EXPECT_LT((end.c2w.centre - Vec3(-15, 0, 15)).norm(), 1e-9);  // x is right
  const TrajectoryFrame right = frames_of("turn:-90deg").back();
  EXPECT_LT((right.c2w.centre - Vec3(15, 0, 15)).norm(), 1e-9);
  EXPECT_NEAR(yaw_left_deg(right), -90, 1e-9);
}

TEST(TrajectoryShapes, TurnOverAGivenLength) {
  const TrajectoryFrame end = frames_of("turn:30deg/10m").back();
  const double radius = 10 / (30 * kDegree);
  EXPECT_NEAR(yaw_left_deg(end), 30, 1e-9);
  EXPECT_NEAR(end.c2w.centre.z(), radius * std::sin(30 * kDegree), 1e-9);
  EXPECT_LT((frames_of("turn:0deg/10m").back().c2w.centre - Vec3(0, 0, 10)).norm(), 1e-12);
}

TEST(TrajectoryShapes, LaneChangeEndsStraightAndBesideTheOldLane) {
  const auto frames = frames_of("lane:3.5m/40m", 101);
  EXPECT_LT((frames.back().c2w.centre - Vec3(-3.5, 0, 40)).norm(), 1e-9);
  EXPECT_NEAR(yaw_left_deg(frames.back()), 0, 1e-6);
  EXPECT_NEAR(yaw_left_deg(frames.front()), 0, 1e-6);
  EXPECT_GT(yaw_left_deg(frames[50]), 5);  // on the way it looks to the left
  EXPECT_LT((frames_of("lane:-3.5m").back().c2w.centre - Vec3(3.5, 0, 28)).norm(), 1e-9);
}

TEST(TrajectoryShapes, OrbitKeepsItsCentreInTheMiddle) {
  const auto frames = frames_of("orbit:120deg/10m");
  for (const TrajectoryFrame& frame : frames) {
    const Vec3 centre = frame.c2w.rotation.transpose() * (Vec3(0, 0, 10) - frame.c2w.centre);
    EXPECT_LT((centre - Vec3(0, 0, 10)).norm(), 1e-9);
  }
  EXPECT_NEAR(yaw_left_deg(frames.back()), 120, 1e-9);
  EXPECT_GT(frames[10].c2w.centre.x(), 0);
}

TEST(TrajectoryShapes, SegmentsContinueOneAnother) {
  const TrajectoryFrame end = frames_of("straight:10m,turn:90deg/15.70796326794897m,straight:5m").back();
  EXPECT_LT((end.c2w.centre - Vec3(-15, 0, 20)).norm(), 1e-9);
  EXPECT_NEAR(yaw_left_deg(end), 90, 1e-9);
}

TEST(TrajectoryShapes, SpeedIsConstantAlongEveryPathAndPosesAreValid) {
  for (const std::string expression : {"straight:20m,turn:30deg",
                                       "lane:3.5m",
                                       "lane:-10m/12m,straight:3m",
                                       "turn:1.5rad,turn:-45deg/8m",
                                       "orbit:-200deg/4m"}) {
    Result<Trajectory> path = trajectory_from_shape(expression, 2001, 30, street_lens());
    ASSERT_TRUE(path) << path.error().message;
    EXPECT_TRUE(validate(*path).empty()) << expression;
    const double first = (path->frames[1].c2w.centre - path->frames[0].c2w.centre).norm();
    ASSERT_GT(first, 0);
    for (std::size_t i = 1; i < path->frames.size(); ++i) {
      const double step = (path->frames[i].c2w.centre - path->frames[i - 1].c2w.centre).norm();
      EXPECT_NEAR(step / first, 1, 2e-3) << expression << ", frame " << i;
      EXPECT_LT(orthonormality_error(path->frames[i].c2w.rotation), 1e-12);
      EXPECT_GT(path->frames[i].c2w.rotation.determinant(), 0);
    }
  }
}

// On all paths but the orbit the camera looks where it goes.
TEST(TrajectoryShapes, CameraLooksAlongThePath) {
  for (const std::string expression : {"straight:20m,turn:60deg", "lane:3.5m", "turn:-90deg/10m,lane:2m"}) {
    const auto frames = frames_of(expression, 1001);
    for (std::size_t i = 1; i < frames.size(); ++i) {
      const Vec3 step = (frames[i].c2w.centre - frames[i - 1].c2w.centre).normalized();
      EXPECT_GT(step.dot(heading(frames[i])), 0.9999) << expression << ", frame " << i;
    }
  }
}

TEST(TrajectoryShapes, StandingStillAndSingleFramesAreFine) {
  for (const TrajectoryFrame& frame : frames_of("straight:0m", 5)) {
    EXPECT_EQ(frame.c2w.centre, Vec3::Zero());
  }
  EXPECT_EQ(frames_of("straight:5m", 1).size(), 1U);
  EXPECT_EQ(frames_of("turn:0deg", 5).back().c2w.centre, Vec3::Zero());
  EXPECT_EQ(frames_of("lane:0m", 5).back().c2w.centre, Vec3::Zero());
}

TEST(TrajectoryShapes, ErrorsNameTheSegment) {
  const struct {
    std::string expression;
    std::string message;
  } kCases[] = {
      {"straight:20m,trun:30deg", "segment 2 'trun:30deg': 'trun' is not one of straight, turn, lane, orbit"},
      {"straight:20", "segment 1 'straight:20': '20' is not a length such as 20m"},
      {"straight:20deg", "segment 1 'straight:20deg': '20deg' is not a length such as 20m"},
      {"turn:30", "segment 1 'turn:30': '30' is not an angle such as 30deg or 0.5rad"},
      {"turn:x3deg", "segment 1 'turn:x3deg': 'x3' is not a number"},
      {"turn:nandeg", "segment 1 'turn:nandeg': 'nan' is not a number"},
      {"turn:30deg/0m", "segment 1 'turn:30deg/0m': '0m' is not a positive length"},
      {"orbit:30deg", "segment 1 'orbit:30deg': orbit needs a radius, as in orbit:90deg/10m"},
      {"straight:5m/5m", "segment 1 'straight:5m/5m': straight takes one length"},
      {"straight:1e9m", "segment 1 'straight:1e9m': '1e9m' is more than 1e+05m"},
      {"straight:5m,", "segment 2 '': has no ':'; segments are straight:20m, turn:30deg, lane:3.5m, orbit:90deg/10m"},
  };
  for (const auto& c : kCases) {
    const Result<Trajectory> trajectory = trajectory_from_shape(c.expression, 49, 10, street_lens());
    ASSERT_FALSE(trajectory) << c.expression;
    EXPECT_EQ(trajectory.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(trajectory.error().message, c.message);
  }
  EXPECT_FALSE(trajectory_from_shape("straight:5m", 0, 10, street_lens()));
  EXPECT_FALSE(trajectory_from_shape("straight:5m", 5, 0, street_lens()));
}

}  // namespace
}  // namespace merope::camera
