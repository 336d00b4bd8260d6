#include <random>

#include <gtest/gtest.h>
#include <Eigen/Geometry>

#include "proto/wire/trajectory_codec.h"

namespace merope::wire {
namespace {

using camera::Mat3;
using camera::Vec3;

constexpr ClipShape kClip{512, 288, 24};

v1::Trajectory one_pose(const Mat3& rotation, const Vec3& translation) {
  v1::Trajectory message;
  message.set_pose_direction(v1::POSE_DIRECTION_CAMERA_TO_WORLD);
  message.set_camera_axes(v1::CAMERA_AXES_OPENCV);
  message.set_length_unit(v1::LENGTH_UNIT_METRE);
  v1::Lens& lens = *message.mutable_lens();
  lens.set_width(512);
  lens.set_height(288);
  lens.mutable_pinhole()->set_fx(300);
  lens.mutable_pinhole()->set_fy(300);
  lens.mutable_pinhole()->set_cx(256);
  lens.mutable_pinhole()->set_cy(144);
  v1::TrajectoryFrame& frame = *message.add_frames();
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column) {
      frame.add_pose(rotation(row, column));
    }
    frame.add_pose(translation(row));
  }
  return message;
}

camera::Pose parsed(const v1::Trajectory& message) {
  Violations violations;
  const auto trajectory = parse_trajectory(message, kClip, violations);
  EXPECT_TRUE(trajectory) << invalid_fields(violations.take()).message;
  return trajectory ? trajectory->frames[0].c2w : camera::Pose{};
}

TEST(TrajectoryCodec, InvertsWorldToCamera) {
  const Mat3 rotation = Eigen::AngleAxisd(0.4, Vec3(1, 2, 3).normalized()).toRotationMatrix();
  const Vec3 centre(10, -20, 30);
  v1::Trajectory message = one_pose(rotation.transpose(), -(rotation.transpose() * centre));
  message.set_pose_direction(v1::POSE_DIRECTION_WORLD_TO_CAMERA);
  const camera::Pose c2w = parsed(message);
  EXPECT_LT((c2w.rotation - rotation).norm(), 1e-12);
  EXPECT_LT((c2w.centre - centre).norm(), 1e-12);
}

TEST(TrajectoryCodec, TurnsOpenGlAxes) {
  v1::Trajectory message = one_pose(Mat3::Identity(), Vec3::Zero());
  message.set_camera_axes(v1::CAMERA_AXES_OPENGL);
  const Mat3 rotation = parsed(message).rotation;
  // The camera looks along its -z, and what is down in the picture is its -y.
  EXPECT_LT((rotation * Vec3::UnitZ() - Vec3(0, 0, -1)).norm(), 1e-15);
  EXPECT_LT((rotation * Vec3::UnitY() - Vec3(0, -1, 0)).norm(), 1e-15);
  EXPECT_LT((rotation * Vec3::UnitX() - Vec3(1, 0, 0)).norm(), 1e-15);
}

TEST(TrajectoryCodec, TurnsForwardLeftUpAxes) {
  v1::Trajectory message = one_pose(Mat3::Identity(), Vec3::Zero());
  message.set_camera_axes(v1::CAMERA_AXES_FLU);
  const Mat3 rotation = parsed(message).rotation;
  EXPECT_LT((rotation * Vec3::UnitZ() - Vec3(1, 0, 0)).norm(), 1e-15) << "looks along x";
  EXPECT_LT((rotation * Vec3::UnitX() - Vec3(0, -1, 0)).norm(), 1e-15) << "right is -y";
  EXPECT_LT((rotation * Vec3::UnitY() - Vec3(0, 0, -1)).norm(), 1e-15) << "down is -z";
}

TEST(TrajectoryCodec, WorldToCameraInOpenGlAxesAgreesWithItsInverse) {
  const Mat3 rotation = Eigen::AngleAxisd(1.1, Vec3(-1, 0.5, 2).normalized()).toRotationMatrix();
  const Vec3 centre(1, 2, 3);
  v1::Trajectory c2w = one_pose(rotation, centre);
  v1::Trajectory w2c = one_pose(rotation.transpose(), -(rotation.transpose() * centre));
  c2w.set_camera_axes(v1::CAMERA_AXES_OPENGL);
  w2c.set_camera_axes(v1::CAMERA_AXES_OPENGL);
  w2c.set_pose_direction(v1::POSE_DIRECTION_WORLD_TO_CAMERA);
  EXPECT_LT((parsed(c2w).rotation - parsed(w2c).rotation).norm(), 1e-12);
  EXPECT_LT((parsed(c2w).centre - parsed(w2c).centre).norm(), 1e-12);
}

TEST(TrajectoryCodec, ConvertsLengthsToMetres) {
  v1::Trajectory message = one_pose(Mat3::Identity(), Vec3(100, 200, -300));
  message.set_length_unit(v1::LENGTH_UNIT_CENTIMETRE);
  EXPECT_LT((parsed(message).centre - Vec3(1, 2, -3)).norm(), 1e-15);
  message.set_length_unit(v1::LENGTH_UNIT_MILLIMETRE);
  EXPECT_LT((parsed(message).centre - Vec3(0.1, 0.2, -0.3)).norm(), 1e-15);
}

TEST(TrajectoryCodec, MakesRotationsExactAfterTheCheck) {
  Mat3 rough = Eigen::AngleAxisd(0.3, Vec3::UnitY()).toRotationMatrix();
  rough(0, 0) += 4e-4;  // what a file with four decimals brings
  const Mat3 rotation = parsed(one_pose(rough, Vec3::Zero())).rotation;
  EXPECT_LT(camera::orthonormality_error(rotation), 1e-14);
  EXPECT_LT((rotation - rough).norm(), 1e-3);
}

TEST(TrajectoryCodec, TakesSixteenNumbers) {
  v1::Trajectory message = one_pose(Mat3::Identity(), Vec3(1, 2, 3));
  for (const double number : {0.0, 0.0, 0.0, 1.0}) {
    message.mutable_frames(0)->add_pose(number);
  }
  EXPECT_EQ(parsed(message).centre, Vec3(1, 2, 3));
}

// Serialise, parse: the same trajectory, for any valid one.
TEST(TrajectoryCodec, BringsBackWhatItSerialised) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> unit(-1, 1);
    const bool one_lens = seed % 2 == 0;
    camera::Trajectory sent;
    double time_s = 1e9 * unit(random);
    const auto random_lens = [&] {
      return camera::Lens{
          kClip.width,
          kClip.height,
          camera::Pinhole{300 + 200 * unit(random), 300 + 200 * unit(random), 256 + 200 * unit(random), 144}};
    };
    const camera::Lens shared = random_lens();
    const int n_frames = 1 + static_cast<int>(random() % 20);
    for (int i = 0; i < n_frames; ++i) {
      camera::TrajectoryFrame& frame = sent.frames.emplace_back();
      Eigen::Quaterniond turn(unit(random), unit(random), unit(random), unit(random) + 1.5);
      frame.c2w.rotation = turn.normalized().toRotationMatrix();
      frame.c2w.centre = 1e5 * Vec3(unit(random), unit(random), unit(random));
      frame.time_s = time_s += 0.01 + std::abs(unit(random));
      frame.lens = one_lens ? shared : random_lens();
    }
    const v1::Trajectory message = serialize_trajectory(sent);
    EXPECT_EQ(message.has_lens(), one_lens || n_frames == 1);
    Violations violations;
    const auto back = parse_trajectory(message, kClip, violations);
    ASSERT_TRUE(back) << invalid_fields(violations.take()).message;
    ASSERT_EQ(back->frames.size(), sent.frames.size());
    for (std::size_t i = 0; i < sent.frames.size(); ++i) {
      EXPECT_LT((back->frames[i].c2w.rotation - sent.frames[i].c2w.rotation).norm(), 1e-12);
      EXPECT_EQ(back->frames[i].c2w.centre, sent.frames[i].c2w.centre);
      EXPECT_EQ(back->frames[i].time_s, sent.frames[i].time_s);
      const auto& lens = std::get<camera::Pinhole>(back->frames[i].lens.model);
      const auto& sent_lens = std::get<camera::Pinhole>(sent.frames[i].lens.model);
      EXPECT_EQ(lens.fx, sent_lens.fx);
      EXPECT_EQ(lens.cx, sent_lens.cx);
    }
  }
}

}  // namespace
}  // namespace merope::wire
