#include "kernels/cam_attention.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "kernels/cpu/thread_pool.h"
#include "kernels/dispatch.h"
#include "tests/kernels/cam_problem.h"

namespace merope::kernels {
namespace {

using camera::EncodingConfig;
using camera::HeadPartition;
using camera::Mat3;
using camera::RandomGeometry;
using camera::TrajectoryFrame;
using camera::Vec3;

// Cameras on a straight line, looking along it.
std::vector<TrajectoryFrame> straight_drive(int n, double step_m) {
  std::vector<TrajectoryFrame> cameras;
  for (int i = 0; i < n; ++i) {
    cameras.push_back({{Mat3::Identity(), Vec3(0, 0, step_m * i)}, 0.1 * i, street_lens()});
  }
  return cameras;
}

// The suite of every backend.
class CamAttention : public testing::TestWithParam<const KernelTable*> {
 protected:
  const CamAttentionKernel& kernel() const { return GetParam()->cam_attention; }
  void run(CamProblem& problem) {
    SerialFor serial;
    problem.run(kernel(), serial);
  }
};

std::string backend_name(const testing::TestParamInfo<const KernelTable*>& backend) {
  return std::string(backend.param->name);
}

INSTANTIATE_TEST_SUITE_P(Backends, CamAttention, testing::ValuesIn(cpu_backends()), &backend_name);

// T7: the online, tiled form against Eq. 1 with full matrices. Shapes that divide neither lanes nor tiles; partitions with
// odd widths, without some parts, with other numbers of anchors; both pair layouts; every part switched off once.
TEST_P(CamAttention, AgreesWithTheDenseOperator) {
  struct Case {
    std::string what;
    int n_cameras;
    camera::TokenGrid grid;
    int n_heads;
    EncodingConfig config;
  };
  std::vector<Case> cases = {
      {"one token", 1, {1, 1}, 1, {}},
      {"one camera", 1, {3, 5}, 2, {}},
      {"several cameras", 4, {3, 5}, 2, {}},
      {"more than a tile of keys", 5, {3, 7}, 1, {}},
      {"a row of tokens", 3, {1, 11}, 1, {}},
      {"panels that are just full", 3, {2, 4}, 3, {}},
  };
  EncodingConfig head_192;
  head_192.partition = camera::default_head_partition(192).value();
  cases.push_back({"head of 192", 3, {2, 5}, 1, head_192});
  EncodingConfig small;
  small.partition = HeadPartition{9, 9, 6, 2, 4, 2};
  small.rho = {0, 0.3, 1};
  cases.push_back({"head of 32 with three anchors", 4, {3, 3}, 2, small});
  EncodingConfig odd;
  odd.partition = HeadPartition{18, 3, 0, 0, 2, 0};
  cases.push_back({"head of 23 without translation", 3, {3, 3}, 2, odd});
  EncodingConfig no_disparity;
  no_disparity.partition = HeadPartition{0, 6, 12, 2, 0, 4};
  no_disparity.rho = {};
  cases.push_back({"without disparity", 3, {3, 3}, 2, no_disparity});
  EncodingConfig split_half;
  split_half.pair_layout = camera::PairLayout::kSplitHalf;
  split_half.native_order = camera::NativeOrder::kTimeYX;
  split_half.pole.fallback = camera::PoleFallback::kHalfTurnAboutX;
  cases.push_back({"split halves", 3, {3, 4}, 2, split_half});
  for (bool EncodingConfig::*part : {&EncodingConfig::disparity_on,
                                     &EncodingConfig::rotation_on,
                                     &EncodingConfig::translation_on,
                                     &EncodingConfig::native_on}) {
    EncodingConfig config;
    config.*part = false;
    cases.push_back({"one part off", 3, {2, 3}, 1, config});
  }

  unsigned seed = 100;
  for (const Case& c : cases) {
    RandomGeometry random(++seed);
    CamProblem problem;
    problem.config = c.config;
    problem.cameras = random_cameras(c.n_cameras, 10, random);
    problem.grid = c.grid;
    problem.n_heads = c.n_heads;
    problem.fill(seed);
    run(problem);
    double worst = 0;
    const std::string where = worst_difference(problem.o, problem.expected(), worst);
    EXPECT_LT(worst, 2e-5) << c.what << ", " << where << ", " << random.trace();
  }
}

// T16: straight forward motion puts the last anchor of every earlier camera's tokens exactly on -e_z.
TEST_P(CamAttention, AgreesWithTheDenseOperatorOnAStraightDrive) {
  for (const camera::PoleFallback fallback :
       {camera::PoleFallback::kHalfTurnAboutY, camera::PoleFallback::kHalfTurnAboutX}) {
    CamProblem problem;
    problem.config.pole.fallback = fallback;
    problem.cameras = straight_drive(5, 1.5);
    problem.grid = {3, 4};
    problem.fill(7);
    run(problem);
    double worst = 0;
    const std::string where = worst_difference(problem.o, problem.expected(), worst);
    EXPECT_LT(worst, 2e-5) << where;
  }
}

// The setting of the paper, and more rows per camera than one item of work takes.
TEST_P(CamAttention, StaysFiniteAndBoundedInTheReferenceSetting) {
  CamProblem problem;
  problem.cameras = straight_drive(13, 2);
  problem.grid = {9, 16};
  problem.fill(8);
  run(problem);
  // U is orthogonal, so no output is longer than the longest value.
  const int d = problem.head_dim();
  const auto norm = [&](const std::vector<float>& x, int token) {
    const float* row = x.data() + std::ptrdiff_t{token} * d;
    return std::sqrt(std::inner_product(row, row + d, row, 0.0));
  };
  double longest = 0;
  for (int token = 0; token < problem.n_tokens(); ++token) {
    longest = std::max(longest, norm(problem.v, token));
  }
  for (int token = 0; token < problem.n_tokens(); ++token) {
    ASSERT_LE(norm(problem.o, token), longest * (1 + 1e-5)) << "token " << token;
  }
}

// T17: a parked car, exactly still or with a hundredth of a millimetre of noise.
TEST_P(CamAttention, StandsStillWithoutTrouble) {
  RandomGeometry random(9);
  for (const double noise_m : {0.0, 1e-5}) {
    CamProblem problem;
    problem.cameras = straight_drive(5, 0);
    for (TrajectoryFrame& camera : problem.cameras) {
      camera.c2w.centre += random.vector(noise_m);
    }
    problem.grid = {2, 5};
    problem.fill(9);
    run(problem);
    double worst = 0;
    const std::string where = worst_difference(problem.o, problem.expected(), worst);
    EXPECT_LT(worst, 2e-5) << where << " with noise " << noise_m;
  }
}

// T7, second half: with all weight on one key the output is U_ab v_b.
TEST_P(CamAttention, WithAllWeightOnOneKeyTheOutputIsItsValueAsSeenFromTheQuery) {
  RandomGeometry random(10);
  CamProblem problem;
  problem.cameras = random_cameras(3, 5, random);
  problem.grid = {2, 2};
  problem.fill(10);
  const int d = problem.head_dim();
  const int key_token = 9;
  for (int query_token = 0; query_token < problem.n_tokens(); ++query_token) {
    // Keys of length 0 but one, and a query along that one as this query token sees it.
    std::fill(problem.k.begin(), problem.k.end(), 0.0F);
    const Eigen::MatrixXd u =
        camera::dense_operator(problem.config, problem.dense_token(query_token), problem.dense_token(key_token));
    Eigen::VectorXd value(d);
    for (int c = 0; c < d; ++c) {
      problem.k[std::size_t(key_token * d + c)] = static_cast<float>(std::sin(0.3 * c + 1));
      value(c) = problem.v[std::size_t(key_token * d + c)];
    }
    const Eigen::VectorXd seen =
        u * Eigen::Map<const Eigen::VectorXf>(problem.k.data() + std::ptrdiff_t{key_token} * d, d).cast<double>();
    for (int c = 0; c < d; ++c) {
      problem.q[std::size_t(query_token * d + c)] = static_cast<float>(20 * seen(c));
    }
    run(problem);
    const Eigen::VectorXd expected = u * value;
    for (int c = 0; c < d; ++c) {
      EXPECT_NEAR(problem.o[std::size_t(query_token * d + c)], expected(c), 2e-5) << "query token " << query_token;
    }
  }
}

// T2 with float kernels on map coordinates: differences of positions are taken in double.
TEST_P(CamAttention, IgnoresWhereTheWorldHasItsOrigin) {
  RandomGeometry random(11);
  CamProblem problem;
  problem.cameras = random_cameras(4, 8, random);
  problem.grid = {3, 3};
  problem.n_heads = 2;
  problem.fill(11);
  run(problem);

  CamProblem moved = problem;
  const Mat3 turn = random.rotation();
  for (TrajectoryFrame& camera : moved.cameras) {
    camera.c2w = {turn * camera.c2w.rotation, turn * camera.c2w.centre + Vec3(4e5, -3e5, 200)};
  }
  moved.fill(11);
  ASSERT_EQ(moved.q, problem.q);
  run(moved);
  double worst = 0;
  const std::vector<double> expected(problem.o.begin(), problem.o.end());
  const std::string where = worst_difference(moved.o, expected, worst);
  EXPECT_LT(worst, 2e-5) << where;
}

// T14: the order of the key cameras is only the order of a sum.
TEST_P(CamAttention, OrderOfTheCamerasDoesNotMatter) {
  RandomGeometry random(12);
  CamProblem problem;
  problem.config.native_on = false;  // time positions would change with the order
  problem.cameras = random_cameras(6, 8, random);
  problem.grid = {3, 5};
  problem.fill(12);
  run(problem);

  const std::vector<int> order = {4, 1, 5, 0, 3, 2};
  CamProblem permuted = problem;
  for (std::size_t i = 0; i < order.size(); ++i) {
    permuted.cameras[i] = problem.cameras[order[i]];
  }
  permuted.fill(12);
  const std::ptrdiff_t block = std::ptrdiff_t{problem.grid.size()} * problem.head_dim();
  const auto permute = [&](const std::vector<float>& from, std::vector<float>& to) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::copy_n(from.begin() + order[i] * block, block, to.begin() + static_cast<std::ptrdiff_t>(i) * block);
    }
  };
  permute(problem.q, permuted.q);
  permute(problem.k, permuted.k);
  permute(problem.v, permuted.v);
  run(permuted);
  std::vector<float> expected(problem.o.size());
  permute(problem.o, expected);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(permuted.o[i], expected[i], 1e-5) << "index " << i;
  }
}

// T11: a part that is off leaves its channels as plain attention has them; the others' outputs only change through the
// weights.
TEST_P(CamAttention, PartsActOnTheirOwnChannels) {
  RandomGeometry random(13);
  CamProblem problem;
  problem.cameras = random_cameras(3, 8, random);
  problem.grid = {2, 3};
  problem.fill(13);
  std::fill(problem.q.begin(), problem.q.end(), 0.0F);  // equal weights, whatever is on
  run(problem);
  CamProblem without = problem;
  without.config.translation_on = false;
  without.fill(13);
  without.q = problem.q;
  run(without);
  const int begin = 72;  // translation in a head of 128
  const int end = 96;
  for (std::size_t i = 0; i < problem.o.size(); ++i) {
    const int c = static_cast<int>(i) % problem.head_dim();
    if (c < begin || c >= end) {
      EXPECT_EQ(problem.o[i], without.o[i]) << "channel " << c;
    } else {
      double mean = 0;
      for (int token = 0; token < problem.n_tokens(); ++token) {
        mean += static_cast<double>(problem.v[std::size_t(token * problem.head_dim() + c)]) / problem.n_tokens();
      }
      EXPECT_NEAR(without.o[i], mean, 1e-6) << "channel " << c;
    }
  }
}

TEST_P(CamAttention, ResultDoesNotDependOnTheNumberOfThreads) {
  RandomGeometry random(14);
  CamProblem problem;
  problem.cameras = random_cameras(5, 8, random);
  problem.grid = {5, 9};
  problem.n_heads = 3;
  problem.fill(14);
  run(problem);
  const std::vector<float> serial = problem.o;
  for (const int n_threads : {2, 3, 7}) {
    ThreadPool pool(n_threads);
    std::fill(problem.o.begin(), problem.o.end(), 0.0F);
    problem.run(kernel(), pool);
    EXPECT_EQ(problem.o, serial) << n_threads << " threads";
  }
}

// Scores of +-2000 overflow exp; the softmax has to take the maximum out first.
TEST_P(CamAttention, LargeScoresDoNotOverflow) {
  RandomGeometry random(15);
  CamProblem problem;
  problem.cameras = random_cameras(3, 8, random);
  problem.grid = {5, 5};
  problem.fill(15);
  for (float& x : problem.q) {
    x *= 100;
  }
  run(problem);
  double worst = 0;
  const std::string where = worst_difference(problem.o, problem.expected(), worst);
  EXPECT_LT(worst, 2e-3) << where;  // scores of 1e3 carry a float error of 1e-4
}

// A NaN in a key reaches every output instead of becoming some number.
TEST_P(CamAttention, NotANumberStaysVisible) {
  RandomGeometry random(16);
  CamProblem problem;
  problem.cameras = random_cameras(2, 8, random);
  problem.grid = {3, 3};
  problem.fill(16);
  problem.k[5] = std::nanf("");
  run(problem);
  for (const float x : problem.o) {
    EXPECT_TRUE(std::isnan(x));
  }
}

TEST_P(CamAttention, SaysWhatItCanNotRun) {
  RandomGeometry random(17);
  CamProblem problem;
  problem.cameras = random_cameras(2, 8, random);
  problem.grid = {2, 2};
  problem.fill(17);
  ASSERT_TRUE(kernel().can_run(problem.args()));
  const auto reason = [&](auto spoil) {
    CamAttentionArgs args = problem.args();
    spoil(args);
    const CanRun answer = kernel().can_run(args);
    return std::string(answer ? "" : answer.reason);
  };
  EXPECT_NE(reason([](CamAttentionArgs& a) { a.v = nullptr; }), "");
  EXPECT_NE(reason([](CamAttentionArgs& a) { a.n_heads = 0; }), "");
  EXPECT_NE(reason([](CamAttentionArgs& a) { a.n_tokens = 7; }), "");
  EXPECT_NE(reason([](CamAttentionArgs& a) { a.partition.rotation = 35; }), "");
  EXPECT_NE(reason([](CamAttentionArgs& a) { a.partition.translation = 22; }), "");
  EXPECT_NE(reason([](CamAttentionArgs& a) { a.partition.native_1 = 7; }), "");
  EXPECT_NE(reason([](CamAttentionArgs& a) { a.partition.native_2 = -2; }), "");
  EXPECT_NE(reason([](CamAttentionArgs& a) { a.tables.n_anchors = 5; }), "");
  EXPECT_NE(reason([](CamAttentionArgs& a) { a.tables.arcs = nullptr; }), "");
  EXPECT_NE(reason([](CamAttentionArgs& a) { a.tables.ray_frame = nullptr; }), "");
  EXPECT_NE(reason([](CamAttentionArgs& a) { a.tables.trans_sin = nullptr; }), "");
  EXPECT_NE(reason([](CamAttentionArgs& a) { a.tables.native_cos = nullptr; }), "");
  const int empty_camera[] = {0, 8, 8};
  EXPECT_NE(reason([&](CamAttentionArgs& a) { a.tables.camera_begin = empty_camera; }), "");
}

}  // namespace
}  // namespace merope::kernels
