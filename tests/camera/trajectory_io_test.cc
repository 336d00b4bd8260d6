#include "core/camera/io/trajectory_formats.h"

#include <numbers>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "core/camera/io/kitti.h"
#include "core/camera/io/merope_json.h"
#include "core/camera/pose_conventions.h"
#include "core/camera/trajectory_shapes.h"
#include "tests/camera/random_geometry.h"

namespace merope::camera {
namespace {

Lens street_lens() {
  return {512, 288, Pinhole{365.6, 365.7, 256, 144.25}};
}
FormatDefaults defaults() {
  return {street_lens(), 10.0};
}

void expect_same(const Trajectory& a, const Trajectory& b, const std::string& what) {
  ASSERT_EQ(a.frames.size(), b.frames.size()) << what;
  for (std::size_t i = 0; i < a.frames.size(); ++i) {
    EXPECT_EQ(a.frames[i].c2w.rotation, b.frames[i].c2w.rotation) << what << ", frame " << i;
    EXPECT_EQ(a.frames[i].c2w.centre, b.frames[i].c2w.centre) << what << ", frame " << i;
    EXPECT_EQ(a.frames[i].time_s, b.frames[i].time_s) << what << ", frame " << i;
    EXPECT_EQ(a.frames[i].lens, b.frames[i].lens) << what << ", frame " << i;
  }
}

TEST(TrajectoryFormats, EveryFormatWritesWhatItReads) {
  RandomGeometry random(7);
  Trajectory trajectory;
  for (int i = 0; i < 9; ++i) {
    trajectory.frames.push_back({random.pose(4e5), i / 10.0, street_lens()});
  }
  for (const TrajectoryFormat& format : trajectory_formats()) {
    const std::string text = format.write(trajectory);
    const Result<Trajectory> named = parse_trajectory(text, format.name, defaults());
    ASSERT_TRUE(named) << format.name << ": " << named.error().message;
    expect_same(*named, trajectory, std::string(format.name));
    EXPECT_EQ(format.write(*named), text);
    const Result<Trajectory> guessed = parse_trajectory(text, "", defaults());
    ASSERT_TRUE(guessed) << format.name << ": " << guessed.error().message;
    expect_same(*guessed, trajectory, std::string(format.name) + " by its looks");
  }
}

TEST(TrajectoryFormats, UnknownNameListsTheKnownOnes) {
  const Result<Trajectory> result = parse_trajectory("", "colmpa", defaults());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "trajectory format 'colmpa' is not one of json, kitti");
}

TEST(TrajectoryFormats, FilesAreValidated) {
  const Result<Trajectory> result =
      parse_trajectory("1 0 0 0 0 1 0 0 0 0 1 0\n2 0 0 0 0 1 0 0 0 0 1 0\n", "kitti", defaults());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "frames[1].pose: rotation is not orthonormal (error 3)");
}

// A walk of five steps forward, as it stands in a file of that dataset.
TEST(Kitti, ForwardWalk) {
  const std::string text =
      "1.000000e+00 0.000000e+00 0.000000e+00 0.000000e+00 0.000000e+00 1.000000e+00 0.000000e+00 0.000000e+00 0.000000e+00 "
      "0.000000e+00 1.000000e+00 0.000000e+00\r\n"
      "1 0 0 0 0 1 0 0 0 0 1 1\n"
      "  1 0 0 0\t0 1 0 0 0 0 1 2  \n"
      "\n"
      "+1 0 0 0 0 1 0 0 0 0 1 3\n"
      "1 0 0 0 0 1 0 0 0 0 1 4";
  const Result<Trajectory> result = parse_trajectory(text, "", defaults());
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->frames.size(), 5U);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(result->frames[i].c2w.centre, Vec3(0, 0, i));
    EXPECT_EQ(result->frames[i].time_s, i / 10.0);
  }
}

// Row-major, so that the third column is where the camera looks: after a left turn by 90 degrees, along -x.
TEST(Kitti, LeftTurn) {
  const Result<Trajectory> result = parse_trajectory("0 0 -1 -3 0 1 0 0 1 0 0 7", "kitti", defaults());
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(Vec3(result->frames[0].c2w.rotation.col(2)), Vec3(-1, 0, 0));
  EXPECT_EQ(result->frames[0].c2w.centre, Vec3(-3, 0, 7));
}

TEST(Kitti, ErrorsNameTheLine) {
  const std::string good = "1 0 0 0 0 1 0 0 0 0 1 0\n";
  const struct {
    std::string text;
    std::string message;
  } kCases[] = {
      {"", "the file holds no pose"},
      {"\n \n", "the file holds no pose"},
      {good + "1 0 0 0 0 1 0 0 0 0 1\n", "line 2: 11 numbers, a pose has 12"},
      {good + "1 0 0 0 0 1 0 0 0 0 1 0 5\n", "line 2: 13 numbers, a pose has 12"},
      {good + "\n" + "1 0 0 x 0 1 0 0 0 0 1 0\n", "line 3: number 4: 'x' is not a number"},
      {"1 0 0 0 0 1 0 nan 0 0 1 0\n", "line 1: number 8: 'nan' is not finite"},
      {"1,0,0,0,0,1,0,0,0,0,1,0\n", "line 1: number 1: '1,0,0,0,0,1,0,0,0,0,1,0' is not a number"},
  };
  for (const auto& c : kCases) {
    const Result<Trajectory> result = parse_kitti(c.text, defaults());
    ASSERT_FALSE(result) << c.text;
    EXPECT_EQ(result.error().message, c.message);
  }
  EXPECT_FALSE(parse_trajectory(good, "kitti", {std::nullopt, 10.0}));
  EXPECT_FALSE(parse_trajectory(good, "kitti", {street_lens(), std::nullopt}));
}

std::string json_file(const std::string& direction,
                      const std::string& axes,
                      const std::string& unit,
                      const std::string& frames) {
  return R"({"format":"merope-trajectory","version":1,"pose_direction":")" + direction + R"(","camera_axes":")" + axes +
         R"(","length_unit":")" + unit +
         R"(","lens":{"width":512,"height":288,"pinhole":{"fx":365.6,"fy":365.7,"cx":256,"cy":144.25}},"frames":[)" +
         frames + "]}";
}

TEST(MeropeJson, ConvertsDirectionAxesAndUnit) {
  // A camera 2 m right of the origin, 1 m up, turned to the left by 90 degrees, in a world with y down.
  const Mat3 left = rotation_about(Vec3(0, -1, 0), std::numbers::pi / 2);
  const Pose expected{left, Vec3(2, -1, 0)};
  ASSERT_LT((expected.rotation.col(2) - Vec3(-1, 0, 0)).norm(), 1e-15);
  const struct {
    std::string direction, axes, unit, pose;
  } kCases[] = {
      {"camera_to_world", "opencv", "metre", "0,0,-1,2, 0,1,0,-1, 1,0,0,0"},
      {"camera_to_world", "opencv", "centimetre", "0,0,-1,200, 0,1,0,-100, 1,0,0,0, 0,0,0,1"},
      {"camera_to_world", "opengl", "metre", "0,0,1,2, 0,-1,0,-1, 1,0,0,0"},
      {"camera_to_world", "flu", "millimetre", "-1,0,0,2000, 0,0,-1,-1000, 0,-1,0,0"},
      {"world_to_camera", "opencv", "metre", "0,0,1,0, 0,1,0,1, -1,0,0,2"},
  };
  for (const auto& c : kCases) {
    const std::string frame = R"({"time_s":0,"pose":[)" + c.pose + "]}";
    const Result<Trajectory> result = parse_trajectory(json_file(c.direction, c.axes, c.unit, frame), "json", {});
    ASSERT_TRUE(result) << c.axes << ": " << result.error().message;
    EXPECT_LT((result->frames[0].c2w.rotation - expected.rotation).norm(), 1e-12) << c.direction << " " << c.axes;
    EXPECT_LT((result->frames[0].c2w.centre - expected.centre).norm(), 1e-12) << c.direction << " " << c.axes;
  }
}

TEST(MeropeJson, KeepsALensPerFrame) {
  Trajectory trajectory;
  for (int i = 0; i < 3; ++i) {
    Lens lens = street_lens();
    std::get<Pinhole>(lens.model).fx += i;
    trajectory.frames.push_back({Pose{}, i * 0.25, lens});
  }
  const Result<Trajectory> result = parse_trajectory(write_merope_json(trajectory), "json", {});
  ASSERT_TRUE(result) << result.error().message;
  expect_same(*result, trajectory, "three lenses");
}

TEST(MeropeJson, ErrorsNameTheField) {
  const std::string pose = "1,0,0,0,0,1,0,0,0,0,1,0";
  const std::string frame = R"({"time_s":0,"pose":[)" + pose + "]}";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = json_file("camera_to_world", "opencv", "metre", frame);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const struct {
    std::string text;
    std::string message;  // a prefix where nlohmann-json's own text follows
  } kCases[] = {
      {with(R"("opencv")", R"("opencl")"), "camera_axes: \"opencl\" is not one of opencv, opengl, flu"},
      {with(R"("opencv")", "3"), "camera_axes: 3 is not one of opencv, opengl, flu"},
      {with(R"("length_unit":"metre",)", ""), "length_unit: is missing"},
      {with(R"("version":1)", R"("version":2)"), "version: 2 is not known; this program reads 1"},
      {with(R"("merope-trajectory")", R"("x")"), "format: is not \"merope-trajectory\""},
      {with(R"("fx":365.6,)", ""), "lens.pinhole.fx: is missing"},
      {with(R"("fx":365.6)", R"("fx":"wide")"), "lens.pinhole.fx: string where a number is expected"},
      {with(R"("fx":365.6)", R"("fx":0)"), "lens.pinhole.fx: 0 is not positive"},
      {with(R"("fx":365.6)", R"("fz":1,"fx":365.6)"), "lens.pinhole.fz: is not a known key"},
      {with(R"("pinhole":{)", R"("fisheye":{)"), "lens.fisheye: is not a known camera model"},
      {with(R"("width":512,)", ""), "lens.width: is missing"},
      {with(R"("width":512)", R"("width":512.5)"), "lens.width: 512.5 is not a whole number in range"},
      {with(pose, "1,0,0"), "frames[0].pose: 3 numbers, a pose has 12 or 16"},
      {with(pose, pose + ",0,0,1,1"), "frames[0].pose: the last row of a 4x4 matrix is 0 0 0 1"},
      {with(pose, "1,0,0,null,0,1,0,0,0,0,1,0"), "frames[0].pose[3]: null where a number is expected"},
      {with(R"("time_s":0,)", ""), "frames[0].time_s: is missing, and so is a frame rate"},
      {with(R"("time_s")", R"("tine_s")"), "frames[0].tine_s: is not a known key"},
      {with(frame, frame + R"(,{"pose":[)" + pose + "]}"), "frames[1].time_s: times stand either at all frames or at none"},
      {with(frame, frame + "," + frame), "frames[1].time_s: 0 is not after 0"},
      {with(frame, ""), "frames: is empty"},
      {with(frame, "7"), "frames[0]: number where an object is expected"},
      {"[]", "file: array where an object is expected"},
      {"{\"format\": tru", "parse error at line 1, column "},
      {with(R"("fx":365.6)", R"("fx":1e999)"), "number overflow"},
  };
  for (const auto& c : kCases) {
    const Result<Trajectory> result = parse_trajectory(c.text, "json", {});
    ASSERT_FALSE(result) << c.message;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(result.error().message.substr(0, c.message.size()), c.message);
  }
}

// Whatever is cut off, doubled or overwritten, the answer is a trajectory or an error with a text.
TEST(TrajectoryFormats, BrokenFilesAreErrors) {
  const Result<Trajectory> original = trajectory_from_shape("straight:5m,turn:20deg", 5, 10, street_lens());
  ASSERT_TRUE(original);
  for (const TrajectoryFormat& format : trajectory_formats()) {
    const std::string text = format.write(*original);
    for (unsigned seed = 0; seed < 500; ++seed) {
      std::mt19937 engine(seed);
      std::string broken = text;
      for (auto n = 1 + engine() % 3; n > 0; --n) {
        const std::size_t at = engine() % broken.size();
        switch (engine() % 4) {
          case 0: broken.resize(at + 1); break;
          case 1: broken.insert(at, broken.substr(at / 2, 20)); break;
          case 2: broken[at] = static_cast<char>(engine() % 256); break;
          default: broken.erase(at, 1 + engine() % 30);
        }
        if (broken.empty()) {
          broken = " ";
        }
      }
      const Result<Trajectory> result = parse_trajectory(broken, format.name, defaults());
      if (result) {
        EXPECT_TRUE(validate(*result).empty()) << format.name << ", seed " << seed;
      } else {
        EXPECT_FALSE(result.error().message.empty()) << format.name << ", seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace merope::camera
