#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <valarray>

#include "worker/schedule/half_log_snr.h"
#include "worker/schedule/schedulers.h"
#include "worker/schedule/unipc.h"

namespace merope::worker {
namespace {

using Samples = std::valarray<float>;

SamplingPlan plan(Solver solver, double shift, int steps, int order = 2, std::optional<SigmaGrid> grid = {}) {
  SchedulerSettings settings = with_request({}, solver, grid, shift);
  settings.solver_order = order;
  return make_sampling_plan(settings, steps).value();
}

// The samples after every step of a run on v = 0.8 x + 0.3 sin(3 x) + 0.1 t / 1000 from (1, -0.5, 0.25, 2).
std::vector<Samples> trace(const SamplingPlan& plan) {
  std::vector<Samples> samples;
  Samples x = {1.0F, -0.5F, 0.25F, 2.0F};
  for (SolverRun<Samples> run(plan); !run.finished();) {
    const Samples velocity = 0.8F * x + 0.3F * std::sin(Samples(3.0F * x)) + 0.1F * run.step().timestep / 1000.0F;
    x = run.advance(x, velocity);
    samples.push_back(x);
  }
  return samples;
}

void expect_samples(const Samples& actual, const std::vector<double>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-6) << "element " << i;
  }
}

void expect_trace(const std::vector<Samples>& actual, const std::vector<std::vector<double>>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t step = 0; step < expected.size(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    expect_samples(actual[step], expected[step]);
  }
}

TEST(UniPc, TracesThePublishedSchedulerAtShift3) {
  expect_trace(trace(plan(Solver::kUniPc, 3, 4)),
               {{0.9058903, -0.4401377, 0.1996219, 1.8385879},
                {0.7655960, -0.3594413, 0.1407206, 1.6477853},
                {0.5427655, -0.2538617, 0.0824586, 1.4180295},
                {0.1501243, -0.0734468, -0.0124431, 0.9594241}});
}

TEST(UniPc, TracesThePublishedSchedulerAtShift5) {
  expect_trace(trace(plan(Solver::kUniPc, 5, 8)),
               {{0.9738569, -0.4833705, 0.2360052, 1.9551606},
                {0.9412082, -0.4631792, 0.2196593, 1.9028779},
                {0.8993368, -0.4381905, 0.2003746, 1.8409370},
                {0.8437662, -0.4061835, 0.1766809, 1.7638609},
                {0.7668739, -0.3641706, 0.1475954, 1.6660635},
                {0.6549240, -0.3074686, 0.1120283, 1.5362978},
                {0.4844507, -0.2300434, 0.0717778, 1.3510292},
                {0.1800007, -0.0905528, 0.0034092, 0.9803542}});
}

TEST(UniPc, TracesThePublishedSchedulerInOneAndTwoSteps) {
  expect_trace(trace(plan(Solver::kUniPc, 5, 1)), {{0.0577649, 0.0993479, -0.2543911, 0.3839263}});
  expect_trace(trace(plan(Solver::kUniPc, 5, 2)),
               {{0.8432232, -0.4002756, 0.1660753, 1.7311044}, {0.0677888, 0.0303861, -0.1336250, 0.7289263}});
}

TEST(UniPc, CoefficientsAreThePublishedOnes) {
  const auto sigmas3 = make_noise_levels(SigmaGrid::kUniPc, 4, 3)->sigmas;
  const double lambdas3[] = {-13.80231762, -2.19855809, -1.10061216, -0.00399590};
  const auto sigmas5 = make_noise_levels(SigmaGrid::kUniPc, 4, 5)->sigmas;
  const double lambdas5[] = {-13.80231762, -2.70938349, -1.61143804, -0.51482165};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(half_log_snr(sigmas3[i]), lambdas3[i], 1e-6) << i;
    EXPECT_NEAR(half_log_snr(sigmas5[i]), lambdas5[i], 1e-6) << i;
  }
  const auto weights_at = [](const std::vector<float>& sigmas, std::size_t i) {
    const float before = half_log_snr(sigmas[i - 1]);
    const float h = half_log_snr(sigmas[i]) - before;
    return corrector_weights((half_log_snr(sigmas[i - 2]) - before) / h, h);
  };
  EXPECT_NEAR(weights_at(sigmas3, 2).earlier, 0.01412541, 1e-6);
  EXPECT_NEAR(weights_at(sigmas3, 2).newest, 0.57558304, 1e-6);
  EXPECT_NEAR(weights_at(sigmas3, 3).earlier, 0.08166009, 1e-6);
  EXPECT_NEAR(weights_at(sigmas3, 3).newest, 0.50794393, 1e-6);
  EXPECT_NEAR(weights_at(sigmas5, 2).earlier, 0.01471728, 1e-6);
  EXPECT_NEAR(weights_at(sigmas5, 2).newest, 0.57499117, 1e-6);
  EXPECT_NEAR(weights_at(sigmas5, 3).earlier, 0.08166003, 1e-6);
  EXPECT_NEAR(weights_at(sigmas5, 3).newest, 0.50794393, 1e-6);
}

TEST(UniPc, LastStepLandsOnTheCleanEstimateExactly) {
  const SamplingPlan steps = plan(Solver::kUniPc, 5, 6);
  SolverRun<Samples> run(steps);
  Samples x = {1.0F, -2.0F};
  while (!run.finished()) {
    x = run.advance(x, Samples(x * 0.3F));
  }
  EXPECT_EQ(x[0], run.clean_estimate()[0]);
  EXPECT_EQ(x[1], run.clean_estimate()[1]);
}

TEST(UniPc, DisabledCorrectorLeavesThatSampleAlone) {
  SchedulerSettings settings = with_request({}, Solver::kUniPc, {}, 3);
  settings.disable_corrector = {0, 2};
  const SamplingPlan steps = make_sampling_plan(settings, 4).value();
  EXPECT_TRUE(steps[0].correction.empty());
  EXPECT_TRUE(steps[1].correction.empty());
  EXPECT_FALSE(steps[2].correction.empty());
  EXPECT_TRUE(steps[3].correction.empty());
}

TEST(Dpm2M, TracesThePublishedScheduler) {
  expect_trace(trace(plan(Solver::kDpm2M, 3, 4)),
               {{0.9057513, -0.4400492, 0.1995474, 1.8383493},
                {0.7650945, -0.3577854, 0.1379662, 1.6392431},
                {0.5405377, -0.2489071, 0.0757978, 1.3992398},
                {0.1498270, -0.0725265, -0.0132277, 0.9454650}});
  expect_trace(trace(plan(Solver::kDpm2M, 5, 8)),
               {{0.9738117, -0.4833418, 0.2359810, 1.9550831},
                {0.9410956, -0.4629747, 0.2193373, 1.9018257},
                {0.8991113, -0.4376812, 0.1995637, 1.8383772},
                {0.8433701, -0.4054122, 0.1755900, 1.7605273},
                {0.7661355, -0.3630923, 0.1462177, 1.6620690},
                {0.6534961, -0.3059641, 0.1104592, 1.5319215},
                {0.4814991, -0.2282044, 0.0703727, 1.3468392},
                {0.1798630, -0.0905148, 0.0034323, 0.9786375}});
  expect_trace(trace(plan(Solver::kDpm2M, 5, 1)), {{0.0579526, 0.0992286, -0.2542907, 0.3842480}});
  expect_trace(trace(plan(Solver::kDpm2M, 5, 2)),
               {{0.8428873, -0.4000620, 0.1658955, 1.7305284}, {0.0679875, 0.0301124, -0.1333668, 0.7296015}});
}

// Here lambda of the first sigma is minus infinity.
TEST(Dpm2M, TracesTheFormulasOnTheGridOfTheOriginalCode) {
  expect_trace(trace(plan(Solver::kDpm2M, 3, 4, 2, SigmaGrid::kWanDpm)),
               {{0.9057664, -0.4400751, 0.1995508, 1.8383824},
                {0.7650490, -0.3571714, 0.1367459, 1.6355392},
                {0.5404192, -0.2484647, 0.0750665, 1.3961731},
                {0.1494424, -0.0723396, -0.0134552, 0.9425874}});
  expect_trace(trace(plan(Solver::kDpm2M, 5, 8, 2, SigmaGrid::kWanDpm)),
               {{0.9738240, -0.4833542, 0.2359863, 1.9551062},
                {0.9411239, -0.4629619, 0.2192824, 1.9016499},
                {0.8991591, -0.4376799, 0.1995209, 1.8382408},
                {0.8434391, -0.4054224, 0.1755589, 1.7604276},
                {0.7662243, -0.3631116, 0.1461967, 1.6620005},
                {0.6535728, -0.3060038, 0.1104236, 1.5318473},
                {0.4815123, -0.2282348, 0.0703199, 1.3467110},
                {0.1796699, -0.0904344, 0.0033718, 0.9782764}});
}

TEST(Euler, TracesThePublishedScheduler) {
  expect_trace(trace(plan(Solver::kEuler, 3, 4)),
               {{0.8658983, -0.4147223, 0.1782070, 1.7700058},
                {0.6272912, -0.2792475, 0.0807972, 1.4496148},
                {0.1244470, -0.0501907, -0.0359847, 0.8922743},
                {0.1225732, -0.0494384, -0.0354470, 0.8846924}});
  expect_samples(trace(plan(Solver::kEuler, 5, 8)).back(), {0.1715426, -0.0826941, -0.0043382, 0.9395313});
}

// For clean samples drawn from a normal distribution (mean 0.7, deviation 0.4) the velocity and the path it leads along are
// known: x(sigma) = (1 - sigma) 0.7 + z sqrt(((1 - sigma) 0.4)^2 + sigma^2), so x(0) = 0.7 + 0.4 z.
double error_on_known_path(const SamplingPlan& plan) {
  const double mean = 0.7;
  const double deviation = 0.4;
  const double z = 1.3;
  const auto spread = [&](double sigma) { return std::hypot((1 - sigma) * deviation, sigma); };
  const double start = plan.front().sigma;
  std::valarray<float> x = {static_cast<float>((1 - start) * mean + z * spread(start))};
  for (SolverRun<std::valarray<float>> run(plan); !run.finished();) {
    const double sigma = run.step().sigma;
    const double z_now = (x[0] - (1 - sigma) * mean) / spread(sigma);
    const double velocity = -mean + z_now * (sigma - (1 - sigma) * deviation * deviation) / spread(sigma);
    x = run.advance(x, {static_cast<float>(velocity)});
  }
  return std::abs(x[0] - (mean + deviation * z));
}

// log2 of how much the error shrinks when the steps double, on average from 10 to 160 steps: the order of accuracy.
double order_of_accuracy(const std::function<SamplingPlan(int steps)>& make) {
  return std::log2(error_on_known_path(make(10)) / error_on_known_path(make(160))) / 4;
}

TEST(Solvers, HaveTheirOrderOfAccuracyOnAKnownPath) {
  const auto unipc = [](int steps) { return plan(Solver::kUniPc, 3, steps); };
  const auto dpm = [](int steps) { return plan(Solver::kDpm2M, 3, steps); };
  const auto euler = [](int steps) { return plan(Solver::kEuler, 3, steps, 2, SigmaGrid::kUniPc); };
  EXPECT_NEAR(order_of_accuracy(unipc), 2.1, 0.3);
  EXPECT_NEAR(order_of_accuracy(dpm), 1.55, 0.15);  // two first-order steps, at the ends where lambda runs away, show
  EXPECT_NEAR(order_of_accuracy(euler), 1.0, 0.1);
  EXPECT_LT(error_on_known_path(unipc(40)), error_on_known_path(euler(40)) / 10);
}

TEST(SchedulerSettings, RequestedSolverBringsItsOwnGridUnlessOneIsNamed) {
  SchedulerSettings checkpoint;
  checkpoint.grid = SigmaGrid::kWanUniPc;
  EXPECT_EQ(with_request(checkpoint, Solver::kUniPc, {}, 7).grid, SigmaGrid::kWanUniPc);
  EXPECT_EQ(with_request(checkpoint, Solver::kUniPc, {}, 7).shift, 7);
  EXPECT_EQ(with_request(checkpoint, Solver::kEuler, {}, 7).grid, SigmaGrid::kEuler);
  EXPECT_EQ(with_request(checkpoint, Solver::kDpm2M, {}, 7).grid, SigmaGrid::kUniPcLegacy);
  EXPECT_EQ(with_request(checkpoint, Solver::kDpm2M, SigmaGrid::kWanDpm, 7).grid, SigmaGrid::kWanDpm);
}

TEST(SchedulerSettings, UniPcRefusesAGridThatStartsAtOne) {
  SchedulerSettings settings;
  settings.grid = SigmaGrid::kWanDpm;
  const Result<SamplingPlan> steps = make_sampling_plan(settings, 4);
  ASSERT_FALSE(steps);
  EXPECT_EQ(steps.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(steps.error().message.find("wan_dpm"), std::string::npos);
}

}  // namespace
}  // namespace merope::worker
