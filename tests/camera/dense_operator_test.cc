#include "core/camera/dense_operator.h"

#include <cmath>
#include <complex>
#include <functional>
#include <numbers>
#include <numeric>

#include <gtest/gtest.h>
#include <Eigen/SVD>

#include "core/camera/epipolar_arc.h"
#include "core/camera/translation_phases.h"
#include "tests/camera/random_geometry.h"

namespace merope::camera {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kDegree = std::numbers::pi / 180;

struct Band {
  int begin;
  int width;
};
constexpr Band kDisparity{0, 36};
constexpr Band kLastAnchor{30, 6};
constexpr Band kRotation{36, 36};
constexpr Band kTranslation{72, 24};
constexpr Band kNative{96, 32};

VectorXd features(const std::function<double(int)>& of_channel) {
  VectorXd x(128);
  for (int c = 0; c < 128; ++c) {
    x(c) = of_channel(c);
  }
  return x;
}
VectorXd golden_query() {
  return features([](int c) { return std::sin(0.1 * (c + 1)); });
}
VectorXd golden_key() {
  return features([](int c) { return std::cos(0.07 * (c + 1)); });
}
VectorXd golden_value() {
  return features([](int c) { return std::sin(0.05 * (c + 1) + 1); });
}

double band_score(const MatrixXd& u, const Band& band) {
  return golden_query().segment(band.begin, band.width).dot((u * golden_key()).segment(band.begin, band.width));
}

Mat3 about_y(double degrees) {
  return rotation_about(Vec3::UnitY(), degrees * kDegree);
}
Mat3 about_x(double degrees) {
  return rotation_about(Vec3::UnitX(), degrees * kDegree);
}

DenseToken ordinary_query() {
  return {{about_y(10), Vec3(1, 0.5, 2)}, Vec3(0.3, -0.2, 1).normalized(), Vec3(2, 3, 4)};
}
DenseToken ordinary_key() {
  return {{about_y(-5) * about_x(3), Vec3(0.2, -0.1, 7)}, Vec3(-0.1, 0.4, 1).normalized(), Vec3(5, 10, 1)};
}
// The key camera of the ordinary pair at a multiple of its distance.
DenseToken ordinary_key_scaled(double factor) {
  DenseToken key = ordinary_key();
  const Vec3 origin = ordinary_query().c2w.centre;
  key.c2w.centre = origin + factor * (key.c2w.centre - origin);
  return key;
}
DenseToken driving_query() {
  return {{Mat3::Identity(), Vec3(0, 0, 10)}, Vec3(-0.2, 0.1, 1).normalized(), Vec3(5, 3, 4)};
}
DenseToken driving_key() {
  return {{Mat3::Identity(), Vec3::Zero()}, Vec3(0.3, -0.2, 1).normalized(), Vec3(2, 10, 1)};
}

EncodingConfig config_with(PoleFallback fallback) {
  EncodingConfig config;
  config.pole.fallback = fallback;
  return config;
}

DenseToken random_token(RandomGeometry& random, double reach_m) {
  return {random.pose(reach_m), random.direction(), Vec3(random.index(13), random.index(16), random.index(9))};
}

void expect_entries(const VectorXd& x, const std::vector<std::pair<int, double>>& expected) {
  for (const auto& [index, value] : expected) {
    EXPECT_NEAR(x(index), value, 1e-9) << "channel " << index;
  }
}

TEST(DenseOperator, GoldenOrdinaryPair) {
  const MatrixXd u = dense_operator({}, ordinary_query(), ordinary_key());
  EXPECT_NEAR(band_score(u, kDisparity), 8.748678779, 1e-9);
  EXPECT_NEAR(band_score(u, kRotation), 15.607486067, 1e-9);
  EXPECT_NEAR(band_score(u, kTranslation), 4.334997600, 1e-9);
  EXPECT_NEAR(band_score(u, kNative), -2.748315235, 1e-9);
  EXPECT_NEAR(golden_query().dot(u * golden_key()) / std::sqrt(128), 2.293045398, 1e-9);
  EXPECT_NEAR((u * golden_key()).norm(), 7.812953580732, 1e-11);
  EXPECT_NEAR(golden_query().norm() * golden_key().norm() / std::sqrt(128), 5.477104, 1e-6);
  expect_entries(u * golden_value(),
                 {{0, 0.342771053},
                  {1, 1.331259188},
                  {2, 0.700048999},
                  {35, 0.487485520},
                  {36, 0.173293620},
                  {72, -0.544539623},
                  {95, -0.535483942},
                  {127, 0.896077055}});
}

TEST(DenseOperator, GoldenOrdinaryPairGeometry) {
  const Pose relative = relative_pose(ordinary_query().c2w, ordinary_key().c2w);
  EXPECT_LT((relative.centre - Vec3(-1.656087091, -0.6, 4.785120223)).cwiseAbs().maxCoeff(), 1e-9);
  Mat3 rotation;
  rotation << 0.965925826, -0.013545542, -0.258464343, 0, 0.998629535, -0.052335956, 0.258819045, 0.050552652, 0.964602059;
  EXPECT_LT((relative.rotation - rotation).cwiseAbs().maxCoeff(), 1e-9);

  const EpipolarArc arc = epipolar_arc(relative.rotation * ordinary_key().ray_c, relative.centre, {});
  EXPECT_NEAR(arc.beta_max_rad, 0.445391910, 1e-9);
  const Vec3 kAnchors[] = {{-0.333259387, 0.320908724, 0.886541467},
                           {-0.334419236, 0.299778153, 0.893474585},
                           {-0.336240910, 0.257081572, 0.906008342},
                           {-0.337872744, 0.148297008, 0.929435316},
                           {-0.334308953, 0.015451390, 0.942336871},
                           {-0.324785400, -0.117669681, 0.938439284}};
  const double kDepthsM[] = {0, 94.024, 28.230, 7.598, 2.214, 0};
  for (std::size_t l = 0; l < 6; ++l) {
    const double rho = EncodingConfig().rho[l];
    EXPECT_LT((anchor_direction(arc, rho) - kAnchors[l]).cwiseAbs().maxCoeff(), 1e-9) << "anchor " << l;
    if (l > 0) {
      const double beta = rho * arc.beta_max_rad;
      const double depth_m = relative.centre.norm() * std::sin(arc.beta_max_rad - beta) / std::sin(beta);
      EXPECT_NEAR(depth_m, kDepthsM[l], 5e-4) << "anchor " << l;
    }
  }
}

TEST(DenseOperator, GoldenTranslationAngles) {
  const std::vector<double> omega = translation_frequencies(4, 0.5, 200);
  const double kWavelengthsM[] = {0.5, 3.684031499, 27.144176166, 200};
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(2 * std::numbers::pi / omega[k], kWavelengthsM[k], 1e-9);
  }
  const double kAngles[] = {-20.811004152,
                            -2.824487814,
                            -0.383341974,
                            -0.052027510,
                            -7.539822369,
                            -1.023311333,
                            -0.138884716,
                            -0.018849556,
                            60.131594156,
                            8.161112924,
                            1.107633435,
                            0.150328985};
  const Vec3 delta_o = relative_pose(ordinary_query().c2w, ordinary_key().c2w).centre;
  const std::vector<double> angles = translation_phases(delta_o, omega);
  ASSERT_EQ(angles.size(), 12U);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(angles[i], kAngles[i], 1e-8) << "angle " << i;
  }
}

TEST(DenseOperator, GoldenStraightDrive) {
  const Pose relative = relative_pose(driving_query().c2w, driving_key().c2w);
  const EpipolarArc arc = epipolar_arc(driving_key().ray_c, relative.centre, {});
  EXPECT_NEAR(arc.beta_max_rad, 2.795545723, 1e-9);
  EXPECT_LT((anchor_direction(arc, 0.7) - Vec3(0.618837852, -0.412558568, -0.668457284)).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_LT((anchor_direction(arc, 1) - Vec3(0, 0, -1)).norm(), 1e-15);

  const struct {
    PoleFallback fallback;
    double disparity, last_anchor, total;
    std::vector<std::pair<int, double>> value;
  } kCases[] = {
      {PoleFallback::kHalfTurnAboutY,
       6.789834523,
       -0.190090446,
       2.777143723,
       {{30, -0.634093118},
        {31, 0.553706072},
        {32, -0.301498141},
        {33, -0.480843812},
        {34, 0.408392958},
        {35, -0.206252650}}},
      {PoleFallback::kHalfTurnAboutX,
       6.253611265,
       -0.726313705,
       2.729747835,
       {{30, 0.449831262},
        {31, -0.461575144},
        {32, -0.619811138},
        {33, 0.350077828},
        {34, -0.343009966},
        {35, -0.447577270}}},
  };
  for (const auto& c : kCases) {
    const MatrixXd u = dense_operator(config_with(c.fallback), driving_query(), driving_key());
    EXPECT_NEAR(band_score(u, kDisparity), c.disparity, 1e-9);
    EXPECT_NEAR(band_score(u, kLastAnchor), c.last_anchor, 1e-9);
    EXPECT_NEAR(band_score(u, kRotation), 16.204920120, 1e-9);
    EXPECT_NEAR(band_score(u, kTranslation), 10.930445425, 1e-9);
    EXPECT_NEAR(band_score(u, kNative), -2.505405526, 1e-9);
    EXPECT_NEAR(golden_query().dot(u * golden_key()) / std::sqrt(128), c.total, 1e-9);
    expect_entries(u * golden_value(), c.value);
    expect_entries(u * golden_value(),
                   {{0, 1.251877477},
                    {1, 0.657916672},
                    {2, 0.616246750},
                    {36, 0.359397603},
                    {72, -0.998054439},
                    {95, -0.284796057},
                    {127, 0.896077055}});
  }
}

// The default fallback is the limit of a sideways drift of a millimetre; up and down drift tends to the other one.
TEST(DenseOperator, GoldenDriftBesideThePole) {
  const struct {
    Vec3 drift_m;
    double last_anchor;
    double tolerance;
  } kCases[] = {{Vec3(1e-3, 0, 0), -0.19012, 5e-6}, {Vec3(0, 1e-3, 0), -0.726, 5e-4}};
  for (const auto& c : kCases) {
    DenseToken key = driving_key();
    key.c2w.centre += c.drift_m;
    EXPECT_NEAR(band_score(dense_operator({}, driving_query(), key), kLastAnchor), c.last_anchor, c.tolerance);
  }
}

// The operator of GTA: T_i^-1 T_j on every four channels.
Eigen::Matrix4d rigid_block(const Pose& relative) {
  Eigen::Matrix4d block = Eigen::Matrix4d::Identity();
  block.topLeftCorner<3, 3>() = relative.rotation;
  block.topRightCorner<3, 1>() = relative.centre;
  return block;
}

// T3: the table of growing baselines. A rigid transform as operator grows with the baseline, MeRoPE keeps the norm.
TEST(DenseOperator, GoldenGrowthWithTheBaseline) {
  const struct {
    double factor;
    double gta_logit, gta_logit_tolerance;
    double gta_norm, gta_norm_tolerance;
    double merope_logit;
  } kRows[] = {{0, 2.249, 5e-4, 1.000, 5e-4, 2.940},
               {1, 3.736, 5e-4, 3.055, 5e-4, 2.293},
               {10, 17.116, 5e-4, 25.37, 5e-3, 2.104},
               {100, 150.9, 5e-2, 249.7, 5e-2, 2.420},
               {1000, 1488.9, 5e-2, 2493, 0.5, 2.404}};
  const VectorXd q = golden_query();
  const VectorXd k = golden_key();
  const double bound = q.norm() * k.norm() / std::sqrt(128);
  for (const auto& row : kRows) {
    const DenseToken key = ordinary_key_scaled(row.factor);
    const Eigen::Matrix4d block = rigid_block(relative_pose(ordinary_query().c2w, key.c2w));
    VectorXd moved(64);
    for (int c = 0; c < 64; c += 4) {
      moved.segment<4>(c) = block * k.segment<4>(c);
    }
    EXPECT_NEAR(q.head(64).dot(moved) / std::sqrt(128), row.gta_logit, row.gta_logit_tolerance) << row.factor;
    EXPECT_NEAR(moved.norm() / k.head(64).norm(), row.gta_norm, row.gta_norm_tolerance) << row.factor;
    const double baseline_m = row.factor * 5.099019514;
    const double spectral_norm = Eigen::JacobiSVD<Eigen::Matrix4d>(block).singularValues()(0);
    EXPECT_NEAR(spectral_norm / ((baseline_m + std::sqrt(baseline_m * baseline_m + 4)) / 2), 1, 1e-9) << row.factor;

    const MatrixXd u = dense_operator({}, ordinary_query(), key);
    const double logit = q.dot(u * k) / std::sqrt(128);
    EXPECT_NEAR(logit, row.merope_logit, 5e-4) << row.factor;
    EXPECT_LE(std::abs(logit), bound);
    EXPECT_NEAR((u * k).norm() / k.norm(), 1, 1e-12) << row.factor;
  }
}

// T1, over random poses, degenerate pairs and other configurations.
TEST(DenseOperator, IsOrthogonal) {
  RandomGeometry random(40);
  EncodingConfig split_half;
  split_half.pair_layout = PairLayout::kSplitHalf;
  EncodingConfig head_192;
  head_192.partition = default_head_partition(192).value();
  for (const EncodingConfig& config : {EncodingConfig(), split_half, head_192}) {
    for (int i = 0; i < 40; ++i) {
      const DenseToken query = random_token(random, 100);
      DenseToken key = random_token(random, 100);
      if (i % 4 == 1) {
        key.c2w.centre = query.c2w.centre;
      } else if (i % 4 == 2) {
        key.c2w = query.c2w;
      } else if (i % 4 == 3) {
        key.c2w.centre = query.c2w.centre - query.c2w.rotation.col(2) * random.uniform(0.1, 30);  // epipole -e_z
      }
      const MatrixXd u = dense_operator(config, query, key);
      const int d = config.partition.head_dim();
      EXPECT_LT((u.transpose() * u - MatrixXd::Identity(d, d)).cwiseAbs().maxCoeff(), 1e-12) << random.trace();
    }
  }
}

// T2: all cameras moved by one rigid motion, half a thousand kilometres away.
TEST(DenseOperator, IgnoresWhereTheWorldHasItsOrigin) {
  RandomGeometry random(41);
  for (int i = 0; i < 30; ++i) {
    const DenseToken query = random_token(random, 20);
    const DenseToken key = random_token(random, 20);
    const Mat3 turn = random.rotation();
    const auto moved = [&](DenseToken token) {
      token.c2w = {turn * token.c2w.rotation, turn * token.c2w.centre + Vec3(4e5, -4e5, 100)};
      return token;
    };
    const MatrixXd change = dense_operator({}, query, key) - dense_operator({}, moved(query), moved(key));
    EXPECT_LT(change.cwiseAbs().maxCoeff(), 1e-8) << random.trace();
  }
}

// T4: away from the jumps of the disparity part a small motion is a small change.
TEST(DenseOperator, IsContinuousAwayFromTheJumps) {
  RandomGeometry random(42);
  int n_checked = 0;
  for (int i = 0; i < 100; ++i) {
    const DenseToken query = random_token(random, 10);
    const DenseToken key = random_token(random, 10);
    const Pose relative = relative_pose(query.c2w, key.c2w);
    const EpipolarArc arc = epipolar_arc(relative.rotation * key.ray_c, relative.centre, {});
    bool near_jump = arc.beta_max_rad > 2.8 || relative.centre.norm() < 1 || query.ray_c.z() < -0.9 || key.ray_c.z() < -0.9;
    for (const double rho : EncodingConfig().rho) {
      near_jump = near_jump || anchor_direction(arc, rho).z() < -0.9;
    }
    if (near_jump) {
      continue;
    }
    ++n_checked;
    DenseToken other = key;
    other.c2w.centre += 1e-6 * random.direction();
    other.c2w.rotation = other.c2w.rotation * rotation_about(random.direction(), 1e-6);
    other.ray_c = (other.ray_c + 1e-6 * random.direction()).normalized();
    const MatrixXd change = dense_operator({}, query, key) - dense_operator({}, query, other);
    EXPECT_LT(change.cwiseAbs().maxCoeff(), 3e-5) << random.trace();
  }
  EXPECT_GT(n_checked, 20);
}

// T6, and T17 with a hundredth of a millimetre of noise.
TEST(DenseOperator, DisparityEqualsRotationWithinOneCamera) {
  RandomGeometry random(43);
  for (int i = 0; i < 40; ++i) {
    const DenseToken query = random_token(random, 10);
    DenseToken key = random_token(random, 10);
    key.c2w = query.c2w;
    if (i % 2 == 1) {
      key.c2w.centre += random.vector(1e-5);
    }
    const MatrixXd u = dense_operator({}, query, key);
    EXPECT_LT((u.block(0, 0, 36, 36) - u.block(36, 36, 36, 36)).cwiseAbs().maxCoeff(), 1e-12) << random.trace();
  }
}

// Across cameras they differ by a roll about the ray: -2.65 degrees in the ordinary pair.
TEST(DenseOperator, DisparityAtInfinityIsNotTheRotationAcrossCameras) {
  const MatrixXd u = dense_operator({}, ordinary_query(), ordinary_key());
  const Mat3 query_frame = min_rot(ordinary_query().ray_c);
  const Mat3 disparity = query_frame * u.block<3, 3>(0, 0);
  const Mat3 rotation = query_frame * u.block<3, 3>(36, 36);
  EXPECT_LT((disparity.col(2) - rotation.col(2)).norm(), 1e-12);
  const Mat3 roll = disparity.transpose() * rotation;
  EXPECT_NEAR(std::atan2(roll(1, 0), roll(0, 0)) / kDegree, -2.65, 5e-3);
}

// T12: with equal rotations the translation part is RoPE over the positions R^T o.
TEST(DenseOperator, TranslationIsRopeOverPositionsWhenRotationsAreEqual) {
  RandomGeometry random(44);
  const std::vector<double> omega = translation_frequencies(4, 0.5, 200);
  // RoPE at a position: pair (axis, k) turned by omega_k * position_axis, written without the code under test.
  const auto rope = [&](const Vec3& position, const VectorXd& x) {
    VectorXd turned(24);
    for (int axis = 0; axis < 3; ++axis) {
      for (int k = 0; k < 4; ++k) {
        const int c = axis * 8 + 2 * k;
        const std::complex<double> pair = std::complex(x(c), x(c + 1)) * std::polar(1.0, omega[k] * position(axis));
        turned(c) = pair.real();
        turned(c + 1) = pair.imag();
      }
    }
    return turned;
  };
  for (int i = 0; i < 30; ++i) {
    DenseToken query = random_token(random, 30);
    DenseToken key = random_token(random, 30);
    key.c2w.rotation = query.c2w.rotation;
    const VectorXd q = golden_query().segment(72, 24);
    const VectorXd k = golden_key().segment(72, 24);
    const double score = q.dot(dense_operator({}, query, key).block(72, 72, 24, 24) * k);
    const Mat3 to_camera = query.c2w.rotation.transpose();
    EXPECT_NEAR(score, rope(to_camera * query.c2w.centre, q).dot(rope(to_camera * key.c2w.centre, k)), 1e-9)
        << random.trace();
  }
}

// T11: a part that is off is the identity on its channels and changes no other.
TEST(DenseOperator, APartThatIsOffIsTheIdentity) {
  const MatrixXd all = dense_operator({}, ordinary_query(), ordinary_key());
  const struct {
    bool EncodingConfig::*part;
    Band band;
  } kParts[] = {{&EncodingConfig::disparity_on, kDisparity},
                {&EncodingConfig::rotation_on, kRotation},
                {&EncodingConfig::translation_on, kTranslation},
                {&EncodingConfig::native_on, kNative}};
  for (const auto& part : kParts) {
    EncodingConfig config;
    config.*part.part = false;
    MatrixXd expected = all;
    expected.block(part.band.begin, part.band.begin, part.band.width, part.band.width).setIdentity();
    EXPECT_EQ(dense_operator(config, ordinary_query(), ordinary_key()), expected);
  }
}

// Split halves are the same rotations on other channels of the same band.
TEST(DenseOperator, PairLayoutsAreAPermutation) {
  EncodingConfig split_half;
  split_half.pair_layout = PairLayout::kSplitHalf;
  std::vector<int> split_of(128);
  std::iota(split_of.begin(), split_of.end(), 0);
  for (const Band& band : {Band{72, 8}, Band{80, 8}, Band{88, 8}, Band{96, 16}, Band{112, 8}, Band{120, 8}}) {
    for (int m = 0; m < band.width / 2; ++m) {
      split_of[static_cast<std::size_t>(band.begin + 2 * m)] = band.begin + m;
      split_of[static_cast<std::size_t>(band.begin + 2 * m + 1)] = band.begin + m + band.width / 2;
    }
  }
  const MatrixXd adjacent = dense_operator({}, ordinary_query(), ordinary_key());
  const MatrixXd split = dense_operator(split_half, ordinary_query(), ordinary_key());
  for (int row = 0; row < 128; ++row) {
    for (int column = 0; column < 128; ++column) {
      EXPECT_EQ(adjacent(row, column), split(split_of[std::size_t(row)], split_of[std::size_t(column)]));
    }
  }
}

}  // namespace
}  // namespace merope::camera
