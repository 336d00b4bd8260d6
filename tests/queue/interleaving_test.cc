#include <gtest/gtest.h>

#include <algorithm>

#include "tests/queue/random_walk.h"

namespace merope::queue {
namespace {

// What happened so far, for the report of a failing seed.
std::string story(const std::vector<std::string>& steps) {
  std::string text;
  for (const std::string& step : steps) {
    text += "  " + step + "\n";
  }
  return text;
}

TEST(QueueInterleaving, ThousandSeedsKeepEveryPromise) {
  constexpr std::uint64_t kSeeds = 1000;
  constexpr int kSteps = 120;
  std::size_t fenced = 0;
  std::size_t poison = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto world = make_memory_world(walk_limits());
    RandomWalk walk(*world, seed);
    std::vector<std::string> steps;
    for (int i = 0; i < kSteps; ++i) {
      steps.push_back(walk.step());
      const std::string broken = walk.check();
      ASSERT_EQ(broken, "") << "seed " << seed << ":\n" << story(steps);
    }
    ASSERT_EQ(walk.drain(), "") << "seed " << seed << ":\n" << story(steps);
    fenced += static_cast<std::size_t>(std::count_if(
        steps.begin(), steps.end(), [](const auto& step) { return step.find("fenced") != std::string::npos; }));
    poison += walk.dump().find("workers were lost") != std::string::npos ? 1 : 0;
  }
  // The walk does reach the rare corners.
  EXPECT_GT(fenced, kSeeds);
  EXPECT_GT(poison, kSeeds / 100);
}

}  // namespace
}  // namespace merope::queue
