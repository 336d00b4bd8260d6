#include "worker/schedule/flow_sigmas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace merope::worker {
namespace {

// Computed by the published schedulers; eight digits pin an fp32 number down to the last bit below 1.
struct Row {
  SigmaGrid grid;
  double shift;
  std::vector<double> sigmas;
  std::vector<double> timesteps;
};

const Row kRows[] = {
    {SigmaGrid::kUniPc, 3, {0.99999899, 0.90011996, 0.75037479, 0.50099897}, {999, 900, 750, 500}},
    {SigmaGrid::kUniPc,
     3,
     {0.99999899, 0.95459503, 0.90011996, 0.83355546, 0.75037479, 0.64346898, 0.50099897, 0.30167764},
     {999, 954, 900, 833, 750, 643, 500, 301}},
    {SigmaGrid::kUniPc, 5, {0.99999899, 0.93757808, 0.83361095, 0.62593609}, {999, 937, 833, 625}},
    {SigmaGrid::kUniPc,
     5,
     {0.99999899, 0.97225308, 0.93757808, 0.89301014, 0.83361095, 0.75049949, 0.62593609, 0.41860658},
     {999, 972, 937, 893, 833, 750, 625, 418}},
    {SigmaGrid::kUniPcLegacy, 3, {0.99966645, 0.89963979, 0.74962479, 0.49966654}, {999, 899, 749, 499}},
    {SigmaGrid::kUniPcLegacy,
     3,
     {0.99966645, 0.95419812, 0.89963979, 0.83296275, 0.74962479, 0.64248961, 0.49966654, 0.29975995},
     {999, 954, 899, 832, 749, 642, 499, 299}},
    {SigmaGrid::kUniPcLegacy, 5, {0.99979985, 0.93726546, 0.83305538, 0.62468731}, {999, 937, 833, 624}},
    {SigmaGrid::kUniPcLegacy,
     5,
     {0.99979985, 0.97200602, 0.93726546, 0.89260185, 0.83305538, 0.74969983, 0.62468731, 0.41638881},
     {999, 972, 937, 892, 833, 749, 624, 416}},
    {SigmaGrid::kWanUniPc, 3, {0.99966645, 0.89963979, 0.74962479, 0.49966657}, {999, 899, 749, 499}},
    {SigmaGrid::kWanUniPc,
     3,
     {0.99966645, 0.95419812, 0.89963979, 0.83296275, 0.74962479, 0.64248967, 0.49966657, 0.29975995},
     {999, 954, 899, 832, 749, 642, 499, 299}},
    {SigmaGrid::kWanUniPc, 5, {0.99979985, 0.93726546, 0.83305538, 0.62468737}, {999, 937, 833, 624}},
    {SigmaGrid::kWanUniPc,
     5,
     {0.99979985, 0.97200602, 0.93726546, 0.89260185, 0.83305538, 0.74969983, 0.62468737, 0.41638881},
     {999, 972, 937, 892, 833, 749, 624, 416}},
    {SigmaGrid::kWanDpm, 3, {1.00000000, 0.89999998, 0.75000000, 0.50000000}, {1000, 900, 750, 500}},
    {SigmaGrid::kWanDpm,
     3,
     {1.00000000, 0.95454544, 0.89999998, 0.83333331, 0.75000000, 0.64285713, 0.50000000, 0.30000001},
     {1000, 954, 900, 833, 750, 642, 500, 300}},
    {SigmaGrid::kWanDpm, 5, {1.00000000, 0.93750000, 0.83333331, 0.62500000}, {1000, 937, 833, 625}},
    {SigmaGrid::kWanDpm,
     5,
     {1.00000000, 0.97222221, 0.93750000, 0.89285713, 0.83333331, 0.75000000, 0.62500000, 0.41666666},
     {1000, 972, 937, 892, 833, 750, 625, 416}},
    {SigmaGrid::kEuler, 3, {1, 0.85769230, 0.60215056, 0.00892857}, {1000, 857.692322, 602.150574, 8.928572}},
    {SigmaGrid::kEuler,
     3,
     {1, 0.94754255, 0.88278776, 0.80083734, 0.69379312, 0.54804558, 0.33797216, 0.00892857},
     {1000, 947.542542, 882.787781, 800.837341, 693.793091, 548.045593, 337.972168, 8.928572}},
    {SigmaGrid::kEuler, 5, {1, 0.90970713, 0.71731746, 0.02441407}, {1000, 909.707153, 717.317444, 24.414066}},
    {SigmaGrid::kEuler,
     5,
     {1, 0.96792322, 0.92640340, 0.87055117, 0.79139698, 0.67051452, 0.46309566, 0.02441407},
     {1000, 967.923218, 926.403381, 870.551147, 791.396973, 670.514526, 463.095673, 24.414066}},
};

TEST(FlowSigmas, AreThoseOfThePublishedSchedulers) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(std::string(to_string(row.grid)) + " shift " + std::to_string(row.shift) + " steps " +
                 std::to_string(row.sigmas.size()));
    const Result<NoiseLevels> levels = make_noise_levels(row.grid, static_cast<int>(row.sigmas.size()), row.shift);
    ASSERT_TRUE(levels);
    ASSERT_EQ(levels->sigmas.size(), row.sigmas.size() + 1);
    ASSERT_EQ(levels->timesteps.size(), row.timesteps.size());
    for (std::size_t i = 0; i < row.sigmas.size(); ++i) {
      EXPECT_NEAR(levels->sigmas[i], row.sigmas[i], 5.1e-9) << i;
      const double printed = row.grid == SigmaGrid::kEuler ? 5.1e-7 : 0;
      EXPECT_NEAR(levels->timesteps[i], row.timesteps[i], printed) << i;
    }
    EXPECT_EQ(levels->sigmas.back(), 0.0F);
  }
}

// Sum of (i + 1) trunc(timestep i) over all runs of 2 to 200 steps, computed by the published schedulers, for the shifts 1,
// 3, 5 and 8. A timestep of the multistep solvers is truncated, so that the last bit of a sigma decides between two
// integers.
const struct {
  SigmaGrid grid;
  std::int64_t totals[4];
} kTimestepTotals[] = {
    {SigmaGrid::kUniPc, {458117962, 723792232, 845640517, 948676697}},
    {SigmaGrid::kUniPcLegacy, {456762746, 721993430, 843671559, 946580201}},
    {SigmaGrid::kWanUniPc, {456778091, 721993430, 843671559, 946580201}},
    {SigmaGrid::kWanDpm, {457232502, 722408860, 844040989, 946881369}},
    {SigmaGrid::kEuler, {451385505, 715991659, 839885740, 947697084}},
};

TEST(FlowSigmas, TimestepsAreThePublishedIntegersForEveryCountOfSteps) {
  constexpr double kShifts[] = {1, 3, 5, 8};
  for (const auto& [grid, totals] : kTimestepTotals) {
    for (std::size_t s = 0; s < 4; ++s) {
      std::int64_t total = 0;
      for (int steps = 2; steps <= 200; ++steps) {
        const Result<NoiseLevels> levels = make_noise_levels(grid, steps, kShifts[s]);
        ASSERT_TRUE(levels);
        for (std::size_t i = 0; i < levels->timesteps.size(); ++i) {
          total += static_cast<std::int64_t>(i + 1) * static_cast<std::int64_t>(levels->timesteps[i]);
        }
      }
      EXPECT_EQ(total, totals[s]) << to_string(grid) << " shift " << kShifts[s];
    }
  }
}

TEST(FlowSigmas, HaveNames) {
  for (const auto& row : kTimestepTotals) {
    EXPECT_EQ(parse_sigma_grid(to_string(row.grid)), row.grid);
  }
  EXPECT_EQ(parse_sigma_grid("karras"), std::nullopt);
}

TEST(FlowSigmas, WanDpmStartsAtExactlyOneAndIsOtherwiseEvenlySpacedBeforeTheShift) {
  const Result<NoiseLevels> levels = make_noise_levels(SigmaGrid::kWanDpm, 4, 5.0);
  ASSERT_TRUE(levels);
  EXPECT_EQ(levels->sigmas, (std::vector<float>{1.0F, 0.9375F, 5.0F / 6, 0.625F, 0.0F}));
  EXPECT_EQ(levels->timesteps, (std::vector<float>{1000, 937, 833, 625}));
}

TEST(FlowSigmas, OneStepGoesFromAllNoiseToNone) {
  for (const SigmaGrid grid : {SigmaGrid::kUniPc, SigmaGrid::kUniPcLegacy, SigmaGrid::kWanUniPc, SigmaGrid::kEuler}) {
    const Result<NoiseLevels> levels = make_noise_levels(grid, 1, 5.0);
    ASSERT_TRUE(levels);
    ASSERT_EQ(levels->sigmas.size(), 2U);
    EXPECT_NEAR(levels->sigmas[0], 1.0, 1e-3) << to_string(grid);
    EXPECT_EQ(levels->sigmas[1], 0.0F) << to_string(grid);
  }
}

TEST(FlowSigmas, FallStrictlyForEveryShiftAndCount) {
  for (const SigmaGrid grid :
       {SigmaGrid::kUniPc, SigmaGrid::kUniPcLegacy, SigmaGrid::kWanUniPc, SigmaGrid::kWanDpm, SigmaGrid::kEuler}) {
    for (const double shift : {0.5, 1.0, 3.0, 5.0, 12.0}) {
      for (const int steps : {2, 3, 20, 50, 1000}) {
        const Result<NoiseLevels> levels = make_noise_levels(grid, steps, shift);
        ASSERT_TRUE(levels);
        for (std::size_t i = 0; i + 1 < levels->sigmas.size(); ++i) {
          ASSERT_GT(levels->sigmas[i], levels->sigmas[i + 1])
              << to_string(grid) << " " << shift << " " << steps << " at " << i;
        }
        EXPECT_LE(levels->sigmas.front(), 1.0F);
      }
    }
  }
}

TEST(FlowSigmas, RefuseNumbersThatMakeNoGrid) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [steps, shift, field] : {std::tuple(0, 5.0, "steps is 0"),
                                            std::tuple(1001, 5.0, "steps is 1001"),
                                            std::tuple(4, 0.0, "shift is 0.0"),
                                            std::tuple(4, -1.0, "shift is -1.0"),
                                            std::tuple(4, nan, "shift is nan")}) {
    const Result<NoiseLevels> levels = make_noise_levels(SigmaGrid::kUniPc, steps, shift);
    ASSERT_FALSE(levels);
    EXPECT_EQ(levels.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(levels.error().message.find(field), std::string::npos) << levels.error().message;
  }
}

}  // namespace
}  // namespace merope::worker
