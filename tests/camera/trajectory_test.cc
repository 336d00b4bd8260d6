#include "core/camera/trajectory.h"

#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/camera/random_geometry.h"

namespace merope::camera {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

Trajectory straight(int n_frames) {
  Trajectory trajectory;
  for (int i = 0; i < n_frames; ++i) {
    TrajectoryFrame frame;
    frame.c2w.centre = Vec3(0, 0, i);
    frame.time_s = i * 0.1;
    frame.lens = {512, 288, Pinhole{365.6, 365.6, 256, 144}};
    trajectory.frames.push_back(frame);
  }
  return trajectory;
}

TEST(TrajectoryValidation, AcceptsAStraightDrive) {
  EXPECT_TRUE(validate(straight(49)).empty());
}

TEST(TrajectoryValidation, AcceptsLargeWorldOffsetsAndRotationsGoodToAThousandth) {
  Trajectory trajectory = straight(5);
  for (TrajectoryFrame& frame : trajectory.frames) {
    frame.c2w.centre += Vec3(4e5, 5e6, 100);
    frame.c2w.rotation *= 1.0004;
  }
  EXPECT_TRUE(validate(trajectory).empty());
}

TEST(TrajectoryValidation, NamesTheFrameAndTheFault) {
  const struct {
    std::function<void(Trajectory&)> spoil;
    FieldViolation expected;
  } kCases[] = {
      {[](Trajectory& t) { t.frames[3].c2w.rotation(0, 1) = 0.31; },
       {"frames[3].pose", "rotation is not orthonormal (error 0.31)"}},
      {[](Trajectory& t) { t.frames[4].c2w.rotation *= 1.01; },
       {"frames[4].pose", "rotation is not orthonormal (error 0.02)"}},
      {[](Trajectory& t) { t.frames[0].c2w.rotation(1, 1) = -1; },
       {"frames[0].pose", "rotation is left-handed (determinant -1)"}},
      {[](Trajectory& t) { t.frames[2].c2w.rotation(2, 0) = kNan; }, {"frames[2].pose", "rotation holds nan"}},
      {[](Trajectory& t) { t.frames[2].c2w.centre.y() = -kInf; }, {"frames[2].pose", "translation holds -inf"}},
      {[](Trajectory& t) { t.frames[2].time_s = 0.1; }, {"frames[2].time_s", "0.1 is not after 0.1"}},
      {[](Trajectory& t) { t.frames[3].time_s = 0.15; }, {"frames[3].time_s", "0.15 is not after 0.2"}},
      {[](Trajectory& t) { t.frames[0].time_s = kNan; }, {"frames[0].time_s", "nan is not finite"}},
      {[](Trajectory& t) {
         t.frames[1].lens.model = Pinhole{0, 1, 0, 0};
       },
       {"frames[1].lens.pinhole.fx", "0 is not positive"}},
      {[](Trajectory& t) { t.frames.clear(); }, {"frames", "is empty"}},
  };
  for (const auto& c : kCases) {
    Trajectory trajectory = straight(5);
    c.spoil(trajectory);
    const std::vector<FieldViolation> violations = validate(trajectory);
    ASSERT_EQ(violations.size(), 1U) << c.expected.field << " " << c.expected.description;
    EXPECT_EQ(violations[0].field, c.expected.field);
    EXPECT_EQ(violations[0].description, c.expected.description);
  }
}

TEST(TrajectoryValidation, SaysOnceWhatIsWrongWithASharedLens) {
  Trajectory trajectory = straight(5);
  for (TrajectoryFrame& frame : trajectory.frames) {
    frame.lens.model = Pinhole{kNan, 0, 256, 144};
  }
  EXPECT_THAT(validate(trajectory),
              testing::ElementsAre(FieldViolation{"lens.pinhole.fx", "nan is not finite"},
                                   FieldViolation{"lens.pinhole.fy", "0 is not positive"}));
}

TEST(TrajectoryValidation, ListsEveryFaultUpTo32) {
  Trajectory trajectory = straight(5);
  trajectory.frames[1].c2w.rotation.setZero();
  trajectory.frames[4].time_s = -1;
  EXPECT_EQ(validate(trajectory).size(), 2U);

  trajectory = straight(101);
  for (TrajectoryFrame& frame : trajectory.frames) {
    frame.c2w.rotation.setZero();
  }
  EXPECT_EQ(validate(trajectory).size(), 32U);
}

TEST(Trajectory, RebasedStartsAtTheOriginAndKeepsRelativePoses) {
  RandomGeometry random(6);
  Trajectory trajectory = straight(9);
  for (TrajectoryFrame& frame : trajectory.frames) {
    frame.c2w = random.pose(20);
    frame.c2w.centre += Vec3(4e5, -5e5, 30);
  }
  const Trajectory local = rebased(trajectory);
  EXPECT_LT((local.frames[0].c2w.rotation - Mat3::Identity()).norm(), 1e-14);
  EXPECT_EQ(local.frames[0].c2w.centre, Vec3::Zero());
  for (std::size_t i = 1; i < trajectory.frames.size(); ++i) {
    const Pose before = relative_pose(trajectory.frames[i - 1].c2w, trajectory.frames[i].c2w);
    const Pose after = relative_pose(local.frames[i - 1].c2w, local.frames[i].c2w);
    EXPECT_LT((before.rotation - after.rotation).norm(), 1e-13) << random.trace();
    EXPECT_LT((before.centre - after.centre).norm(), 1e-9) << random.trace();
    EXPECT_EQ(local.frames[i].time_s, trajectory.frames[i].time_s);
  }
}

TEST(Trajectory, LatentCameraLIsFrame4L) {
  const std::vector<TrajectoryFrame> cameras = latent_cameras(straight(49));
  ASSERT_EQ(cameras.size(), 13U);
  for (std::size_t l = 0; l < cameras.size(); ++l) {
    EXPECT_EQ(cameras[l].c2w.centre.z(), 4.0 * static_cast<double>(l));
  }
  EXPECT_EQ(latent_cameras(straight(1)).size(), 1U);
}

TEST(TrajectoryDeathTest, LatentCamerasNeed4NPlus1Frames) {
  EXPECT_DEATH(latent_cameras(straight(48)), "4n\\+1");
}

}  // namespace
}  // namespace merope::camera
