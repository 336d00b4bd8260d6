#include "core/camera/encoding/encodings.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>

#include "core/camera/epipolar_arc.h"
#include "core/camera/native_phases.h"
#include "core/camera/translation_phases.h"
#include "tests/camera/random_geometry.h"

namespace merope::camera {
namespace {

constexpr TokenGrid kDrivingGrid{9, 16};

Lens street_lens() {
  return {512, 288, pinhole_from_fov(512, 288, 70 * std::numbers::pi / 180)};
}

std::vector<TrajectoryFrame> straight_drive(int n, double step_m) {
  std::vector<TrajectoryFrame> cameras;
  for (int i = 0; i < n; ++i) {
    cameras.push_back({{Mat3::Identity(), Vec3(0, 0, step_m * i)}, 0.1 * i, street_lens()});
  }
  return cameras;
}

std::vector<TrajectoryFrame> random_cameras(int n, RandomGeometry& random) {
  std::vector<TrajectoryFrame> cameras;
  for (int i = 0; i < n; ++i) {
    cameras.push_back({random.pose(20), 0.1 * i, street_lens()});
  }
  return cameras;
}

EncodingTables tables_of(const std::vector<TrajectoryFrame>& cameras,
                         const TokenGrid& grid,
                         const EncodingConfig& config = {}) {
  Result<EncodingTables> tables = prepare_encoding("merope", config, cameras, grid);
  EXPECT_TRUE(tables) << tables.error().message;
  return *std::move(tables);
}

Eigen::Map<const Eigen::Matrix<float, 3, 3, Eigen::RowMajor>> matrix_at(const std::vector<float>& table, int index) {
  return Eigen::Map<const Eigen::Matrix<float, 3, 3, Eigen::RowMajor>>(table.data() + 9 * std::ptrdiff_t{index});
}

TEST(RayGrid, TokensLookThroughTheMiddleOfTheirPixels) {
  const Lens lens = street_lens();
  const RayGrid grid = ray_grid(lens, kDrivingGrid, TokenCentre::kMiddle, InvalidRayPolicy::kClamp);
  ASSERT_EQ(grid.rays_c.size(), 144U);
  EXPECT_EQ(grid.n_invalid, 0);
  EXPECT_LT((grid.rays_c[0] - *unproject(lens, {16, 16})).norm(), 1e-15);
  EXPECT_LT((grid.rays_c[16 * 2 + 5] - *unproject(lens, {5.5 * 32, 2.5 * 32})).norm(), 1e-15);
  // Column fastest, and as far to the left as to the right.
  EXPECT_LT(grid.rays_c[0].x(), grid.rays_c[1].x());
  EXPECT_NEAR(grid.rays_c[0].x(), -grid.rays_c[15].x(), 1e-15);
  EXPECT_NEAR(grid.rays_c[0].y(), -grid.rays_c[128].y(), 1e-15);

  const RayGrid corner = ray_grid(lens, kDrivingGrid, TokenCentre::kCorner, InvalidRayPolicy::kClamp);
  EXPECT_LT((corner.rays_c[0] - *unproject(lens, {0, 0})).norm(), 1e-15);
}

// A lens that sees a disk of 100 pixels around the middle of its picture.
std::optional<Vec3> disk_lens(const Vec2& pixel) {
  const Vec2 offset = pixel - Vec2(200, 150);
  if (offset.norm() > 100) {
    return std::nullopt;
  }
  return Vec3(offset.x(), offset.y(), 100).normalized();
}

TEST(RayGrid, PixelsOutsideTheLensGetASubstitute) {
  bool valid = false;
  const Vec2 middle(200, 150);
  EXPECT_LT(
      (ray_or_substitute(&disk_lens, {230, 190}, middle, InvalidRayPolicy::kClamp, valid) - *disk_lens({230, 190})).norm(),
      1e-15);
  EXPECT_TRUE(valid);
  const Vec3 clamped = ray_or_substitute(&disk_lens, {380, 390}, middle, InvalidRayPolicy::kClamp, valid);
  EXPECT_FALSE(valid);
  EXPECT_LT((clamped - *disk_lens(middle + 99.9 * Vec2(180, 240).normalized())).norm(), 1e-9);
  EXPECT_EQ(ray_or_substitute(&disk_lens, {380, 390}, middle, InvalidRayPolicy::kForward, valid), Vec3(0, 0, 1));
  EXPECT_FALSE(valid);
}

TEST(HeadPartition, DefaultsAreThoseOfThePaperScaled) {
  EXPECT_EQ(default_head_partition(128).value(), (HeadPartition{36, 36, 24, 16, 8, 8}));
  EXPECT_EQ(default_head_partition(128).value(), HeadPartition());
  EXPECT_EQ(default_head_partition(192).value(), (HeadPartition{54, 54, 36, 24, 12, 12}));
  EXPECT_EQ(default_head_partition(192).value().native(), 48);
  for (const int d : {64, 128, 192, 256, 320}) {
    EXPECT_TRUE(validate(default_head_partition(d).value(), d, 6)) << d;
  }
  EXPECT_EQ(default_head_partition(96).error().message,
            "head_dim: 96 is not a multiple of 64, so its partition must be named");
}

TEST(HeadPartition, ValidationNamesTheWidth) {
  const struct {
    HeadPartition partition;
    std::string message;
  } kCases[] = {
      {{35, 36, 24, 16, 8, 9}, "partition.disparity: 35 is not a multiple of 18"},
      {{36, 37, 24, 16, 8, 7}, "partition.rotation: 37 is not a multiple of 3"},
      {{36, 36, 20, 16, 8, 12}, "partition.translation: 20 is not a multiple of 6"},
      {{36, 36, 24, 15, 8, 9}, "partition.native_time: 15 is not a multiple of 2"},
      {{36, 36, 24, 16, 8, -8}, "partition.native_y: -8 is not in 0 to 65536"},
      {{36, 36, 24, 16, 8, 6}, "partition: adds up to 126, the head has 128"},
  };
  for (const auto& c : kCases) {
    const Status status = validate(c.partition, 128, 6);
    ASSERT_FALSE(status) << c.message;
    EXPECT_EQ(status.error().message, c.message);
  }
}

TEST(EncodingConfig, JsonKeepsEveryKey) {
  EncodingConfig config;
  config.partition = {9, 9, 6, 4, 2, 2};
  config.rho = {0, 0.25, 1};
  config.min_wavelength_m = 1;
  config.max_wavelength_m = 50;
  config.pair_layout = PairLayout::kSplitHalf;
  config.native_order = NativeOrder::kTimeYX;
  config.native_frequencies = NativeFrequencies::kBackbonePrefix;
  config.native_base = 100;
  config.backbone_head_dim = 64;
  config.min_baseline_m = 0.02;
  config.eps_parallel = 1e-4;
  config.pole = {1e-11, PoleFallback::kHalfTurnAboutX};
  config.token_centre = TokenCentre::kCorner;
  config.invalid_ray_policy = InvalidRayPolicy::kForward;
  config.disparity_on = config.rotation_on = config.translation_on = config.native_on = false;
  const Result<EncodingConfig> read = encoding_config_from_json(to_json(config));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, config);
  EXPECT_EQ(encoding_config_from_json("{}").value(), EncodingConfig());
  EXPECT_EQ(encoding_config_from_json(to_json({})).value(), EncodingConfig());
  EXPECT_EQ(encoding_config_from_json(R"({"partition":{"native_x":6,"native_y":10}})").value().partition.native_y, 10);
}

TEST(EncodingConfig, JsonErrorsNameTheKey) {
  const struct {
    std::string text;
    std::string message;
  } kCases[] = {
      {R"({"roh":[0,1]})", "roh: is not a known key"},
      {R"({"rho":1})", "rho: 1 is not an array of numbers"},
      {R"({"rho":[0,"x"]})", "rho[1]: \"x\" is not a number"},
      {R"({"rho":[0,0.5,0.5,0.6,0.7,1]})", "rho[2]: 0.5 is not above the one before it"},
      {R"({"rho":[-0.1,0.1,0.5,0.6,0.7,1]})", "rho[0]: -0.1 is not in 0 to 1"},
      {R"({"rho":[0,0.5,0.6,0.7,1]})", "partition.disparity: 36 is not a multiple of 15"},
      {R"({"partition":{"disparity":"wide"}})", "partition.disparity: \"wide\" is not a whole number in range"},
      {R"({"partition":{"disparity":0.5}})", "partition.disparity: 0.5 is not a whole number in range"},
      {R"({"partition":{"disp":36}})", "partition.disp: is not a known key"},
      {R"({"pair_layout":"interleaved"})", "pair_layout: \"interleaved\" is not one of adjacent, split_half"},
      {R"({"native_on":1})", "native_on: 1 is not true or false"},
      {R"({"min_wavelength_m":0})", "min_wavelength_m: 0 is not positive"},
      {R"({"max_wavelength_m":0.1})", "max_wavelength_m: 0.1 is below min_wavelength_m"},
      {R"({"min_baseline_m":-1})", "min_baseline_m: -1 is not positive"},
      {R"({"eps_pole":2})", "eps_pole: 2 is not between 0 and 1"},
      {R"([])", "the encoding's configuration is not a JSON object"},
  };
  for (const auto& c : kCases) {
    const Result<EncodingConfig> result = encoding_config_from_json(c.text);
    ASSERT_FALSE(result) << c.text;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(result.error().message, c.message);
  }
  EXPECT_FALSE(encoding_config_from_json("{"));
}

TEST(NativePhases, FrequenciesFollowTheSubBandOrTheBackbone) {
  EncodingConfig config;
  NativeFrequencyTable table = native_frequency_table(config);
  ASSERT_EQ(table.time.size(), 8U);
  ASSERT_EQ(table.x.size(), 4U);
  EXPECT_DOUBLE_EQ(table.time[0], 1);
  EXPECT_DOUBLE_EQ(table.time[4], 0.01);  // 10000^(-8/16)
  EXPECT_DOUBLE_EQ(table.y[2], 0.01);     // 10000^(-4/8)
  config.native_frequencies = NativeFrequencies::kBackbonePrefix;
  table = native_frequency_table(config);
  EXPECT_DOUBLE_EQ(table.time[1], std::pow(10000, -2.0 / 44));
  EXPECT_DOUBLE_EQ(table.x[1], std::pow(10000, -2.0 / 42));

  const std::vector<double> x_first = native_phases(Vec3(1, 2, 3), table, NativeOrder::kTimeXY);
  const std::vector<double> y_first = native_phases(Vec3(1, 2, 3), table, NativeOrder::kTimeYX);
  EXPECT_EQ(x_first[8], 2);
  EXPECT_EQ(y_first[8], 3);
}

TEST(TranslationPhases, OneWavelengthForAllSlots) {
  const std::vector<double> omega = translation_frequencies(4, 27.14, 27.14);
  for (const double w : omega) {
    EXPECT_DOUBLE_EQ(w, 2 * std::numbers::pi / 27.14);
  }
  EXPECT_DOUBLE_EQ(translation_frequencies(1, 0.5, 200)[0], 4 * std::numbers::pi);
}

// What every encoding in the registry has to keep.
class EncodingContract : public testing::TestWithParam<const CameraEncoding*> {};

std::vector<const CameraEncoding*> all_encodings() {
  std::vector<const CameraEncoding*> all;
  for (const CameraEncoding& encoding : encodings()) {
    all.push_back(&encoding);
  }
  return all;
}
std::string encoding_name(const testing::TestParamInfo<const CameraEncoding*>& encoding) {
  return std::string(encoding.param->name);
}
INSTANTIATE_TEST_SUITE_P(Registry, EncodingContract, testing::ValuesIn(all_encodings()), &encoding_name);

TEST_P(EncodingContract, IsFoundByItsName) {
  EXPECT_EQ(find_encoding(GetParam()->name).value(), GetParam());
}

TEST_P(EncodingContract, RefusesUnusableInputsBySayingWhich) {
  const std::vector<TrajectoryFrame> good = straight_drive(2, 1);
  const auto message = [&](const std::vector<TrajectoryFrame>& cameras, const TokenGrid& grid, EncodingConfig config = {}) {
    const Result<EncodingTables> tables = GetParam()->prepare(config, {cameras, grid, {}});
    return tables ? std::string() : tables.error().message;
  };
  EXPECT_EQ(message(good, {2, 2}), "");
  EXPECT_EQ(message({}, {2, 2}), "cameras: there are none");
  EXPECT_EQ(message(good, {0, 2}), "grid: 0 x 2 tokens");
  std::vector<TrajectoryFrame> bad = good;
  bad[1].c2w.rotation(0, 0) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message(bad, {2, 2}), "cameras[1]: its pose is not a rigid transform");
  bad = good;
  bad[0].c2w.centre.x() = std::numeric_limits<double>::infinity();
  EXPECT_EQ(message(bad, {2, 2}), "cameras[0]: its pose is not a rigid transform");
  bad = good;
  bad[1].lens.model = Pinhole{0, 1, 0, 0};
  EXPECT_EQ(message(bad, {2, 2}), "cameras[1]: its lens is not valid");
  EncodingConfig config;
  config.native_base = 0.5;
  EXPECT_EQ(message(good, {2, 2}, config), "native_base: 0.5 is not above 1");
}

// T13: what is shared by layers and steps is what each would have built.
TEST_P(EncodingContract, SameInputsGiveTheSameTables) {
  RandomGeometry random(50);
  const std::vector<TrajectoryFrame> cameras = random_cameras(4, random);
  const EncodingTables a = GetParam()->prepare({}, {cameras, {3, 5}, {}}).value();
  const EncodingTables b = GetParam()->prepare({}, {cameras, {3, 5}, {}}).value();
  EXPECT_EQ(a.token_frame, b.token_frame);
  EXPECT_EQ(a.ray_frame, b.ray_frame);
  EXPECT_EQ(a.native_cos, b.native_cos);
  EXPECT_EQ(a.trans_sin, b.trans_sin);
  EXPECT_EQ(a.arcs, b.arcs);
}

TEST(Encodings, UnknownNameListsTheKnownOnes) {
  const Result<EncodingTables> tables = prepare_encoding("mereope", {}, straight_drive(1, 1), {1, 1});
  ASSERT_FALSE(tables);
  EXPECT_EQ(tables.error().message, "encoding 'mereope' is not one of merope");
}

TEST(MeropeTables, ShapesOfTheReferenceSetting) {
  const EncodingTables tables = tables_of(straight_drive(13, 2), kDrivingGrid);
  EXPECT_EQ(tables.n_cameras, 13);
  EXPECT_EQ(tables.n_tokens, 1872);
  ASSERT_EQ(tables.camera_begin.size(), 14U);
  EXPECT_EQ(tables.camera_begin[12], 1728);
  EXPECT_EQ(tables.camera_begin[13], 1872);
  EXPECT_EQ(tables.token_frame.size(), 1872U * 9);
  EXPECT_EQ(tables.ray_frame.size(), 1872U * 9);
  EXPECT_EQ(tables.native_cos.size(), 1872U * 16);
  EXPECT_EQ(tables.native_sin.size(), 1872U * 16);
  EXPECT_EQ(tables.trans_cos.size(), 13U * 13 * 12);
  EXPECT_EQ(tables.trans_sin.size(), 13U * 13 * 12);
  EXPECT_EQ(tables.arcs.size(), 13U * 1872 * 7);
  EXPECT_EQ(tables.rho.size(), 6U);
  EXPECT_EQ(tables.n_invalid_rays, 0);
}

// T1 for the float tables.
TEST(MeropeTables, RotationsAreOrthogonalInFloat) {
  RandomGeometry random(51);
  const EncodingTables tables = tables_of(random_cameras(6, random), {4, 7});
  for (int token = 0; token < tables.n_tokens; ++token) {
    for (const std::vector<float>* table : {&tables.token_frame, &tables.ray_frame}) {
      const Mat3 matrix = matrix_at(*table, token).cast<double>();
      EXPECT_LT(orthonormality_error(matrix), 1e-6) << random.trace();
    }
  }
  for (std::size_t i = 0; i < tables.trans_cos.size(); ++i) {
    EXPECT_NEAR(std::hypot(tables.trans_cos[i], tables.trans_sin[i]), 1, 1e-6);
  }
  for (std::size_t i = 0; i < tables.native_cos.size(); ++i) {
    EXPECT_NEAR(std::hypot(tables.native_cos[i], tables.native_sin[i]), 1, 1e-6);
  }
}

float round_to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) & 0xFFFF0000U);
}

// T1 after rounding to bf16: a rotated triplet keeps its length to 8e-3.
TEST(MeropeTables, RotatedTripletsKeepTheirLengthInBf16) {
  RandomGeometry random(52);
  const EncodingTables tables = tables_of(random_cameras(3, random), {4, 7});
  for (int token = 0; token < tables.n_tokens; ++token) {
    const Eigen::Vector3f x = random.vector(2).cast<float>();
    Eigen::Vector3f rotated = matrix_at(tables.ray_frame, token) * x;
    for (float& value : rotated) {
      value = round_to_bf16(value);
    }
    EXPECT_NEAR(rotated.norm() / x.norm(), 1, 8e-3) << random.trace();
  }
}

// T2: raw map coordinates give the same float tables as the local ones, but for the world's rotation.
TEST(MeropeTables, LargeWorldOffsetsCostNoAccuracy) {
  RandomGeometry random(53);
  const std::vector<TrajectoryFrame> cameras = random_cameras(5, random);
  std::vector<TrajectoryFrame> moved = cameras;
  for (TrajectoryFrame& camera : moved) {
    camera.c2w.centre += Vec3(4e5, -4e5, 50);
  }
  const EncodingTables a = tables_of(cameras, {3, 4});
  const EncodingTables b = tables_of(moved, {3, 4});
  for (std::size_t i = 0; i < a.trans_cos.size(); ++i) {
    EXPECT_NEAR(a.trans_cos[i], b.trans_cos[i], 1e-6) << random.trace();
    EXPECT_NEAR(a.trans_sin[i], b.trans_sin[i], 1e-6) << random.trace();
  }
  for (std::size_t i = 0; i < a.arcs.size(); ++i) {
    EXPECT_NEAR(a.arcs[i], b.arcs[i], 1e-6) << random.trace();
  }
}

// T16 and T9: on an exactly straight line the last anchor of all tokens of the cameras behind is -e_z, and its frame carries
// e_z there. A literal evaluation of Eq. 5 is NaN or the identity at this place.
TEST(MeropeTables, StraightDrivePutsTheLastAnchorOnThePole) {
  const std::vector<TrajectoryFrame> cameras = straight_drive(13, 2);
  const EncodingTables tables = tables_of(cameras, kDrivingGrid);
  const RayGrid rays = ray_grid(street_lens(), kDrivingGrid, TokenCentre::kMiddle, InvalidRayPolicy::kClamp);
  for (int query = 0; query < 13; ++query) {
    for (int token = 0; token < tables.n_tokens; ++token) {
      const int key = token / kDrivingGrid.size();
      const EpipolarArc arc = epipolar_arc(rays.rays_c[std::size_t(token % kDrivingGrid.size())],
                                           relative_pose(cameras[query].c2w, cameras[key].c2w).centre,
                                           {});
      const Vec3 last = anchor_direction(arc, 1);
      EXPECT_LT((min_rot(last).col(2) - last).norm(), 1e-12);
      const float* stored = tables.arcs.data() + (std::ptrdiff_t{query} * tables.n_tokens + token) * 7;
      const float c = std::cos(stored[6]);
      const float s = std::sin(stored[6]);
      const Eigen::Vector3f in_float(
          c * stored[0] + s * stored[3], c * stored[1] + s * stored[4], c * stored[2] + s * stored[5]);
      EXPECT_LT((in_float.cast<double>() - last).norm(), 1e-6);
      if (key < query) {
        // Near enough for the float kernels to take the fallback, so that they agree with the double oracle.
        EXPECT_LT(in_float.head<2>().squaredNorm(), tables.config.pole.eps);
        EXPECT_LT(last.head<2>().squaredNorm(), tables.config.pole.eps);
      }
    }
  }
}

// T17: still, or with a hundredth of a millimetre of noise, every arc has collapsed.
TEST(MeropeTables, AParkedCarCollapsesAllArcs) {
  RandomGeometry random(54);
  for (const double noise_m : {0.0, 1e-5}) {
    std::vector<TrajectoryFrame> cameras = straight_drive(13, 0);
    for (TrajectoryFrame& camera : cameras) {
      camera.c2w.centre += random.vector(noise_m);
    }
    const EncodingTables tables = tables_of(cameras, {3, 4});
    for (int query = 0; query < 13; ++query) {
      for (int token = 0; token < tables.n_tokens; ++token) {
        const float* arc = tables.arcs.data() + (std::ptrdiff_t{query} * tables.n_tokens + token) * 7;
        EXPECT_EQ(arc[6], 0);
        EXPECT_EQ(Eigen::Vector3f(arc[3], arc[4], arc[5]), Eigen::Vector3f::Zero());
        // The direction at infinity is the token's own ray, the third column of its frame.
        EXPECT_NEAR(arc[0], matrix_at(tables.token_frame, token)(0, 2), 1e-7);
        EXPECT_NEAR(arc[1], matrix_at(tables.token_frame, token)(1, 2), 1e-7);
        EXPECT_NEAR(arc[2], matrix_at(tables.token_frame, token)(2, 2), 1e-7);
      }
    }
  }
}

// Several views of one moment share a time position when the caller says so.
TEST(MeropeTables, LatentFramesCanBeShared) {
  const std::vector<TrajectoryFrame> cameras = straight_drive(2, 1);
  const std::vector<int> latent_frames = {3, 3};
  const EncodingTables tables = find_encoding("merope").value()->prepare({}, {cameras, {1, 1}, latent_frames}).value();
  EXPECT_NEAR(tables.native_cos[0], std::cos(3.0), 1e-7);
  EXPECT_EQ(tables.native_cos[0], tables.native_cos[16]);
  const std::vector<int> too_few = {3};
  EXPECT_FALSE(find_encoding("merope").value()->prepare({}, {cameras, {1, 1}, too_few}));
}

}  // namespace
}  // namespace merope::camera
