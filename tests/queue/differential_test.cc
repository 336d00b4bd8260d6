// The scripts against the readable rules: the same random sequence on both, every answer compared.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/queue/random_walk.h"
#include "tests/queue/redis_world.h"

namespace merope::queue {
namespace {

std::size_t entries_in_streams() {
  std::size_t entries = 0;
  for (const char* priority : {"high", "normal", "low"}) {
    const std::string stream = std::string("{merope}:s:") + priority;
    entries += std::stoul(redis_world_server().command("XLEN " + stream));
    entries += std::stoul(redis_world_server().command("XLEN " + stream + ":returned"));
  }
  return entries;
}

TEST(QueueDifferential, RedisAnswersLikeMemory) {
  constexpr std::uint64_t kSeeds = 30;
  constexpr int kSteps = 120;
  constexpr int kStepsBetweenDumps = 10;
  for (std::uint64_t seed = 5001; seed < 5001 + kSeeds; ++seed) {
    const auto memory_world = make_memory_world(walk_limits());
    const auto redis_world = make_redis_world(walk_limits());
    RandomWalk memory(*memory_world, seed);
    RandomWalk redis(*redis_world, seed);
    std::string story;
    for (int i = 0; i < kSteps; ++i) {
      const std::string expected = memory.step();
      ASSERT_EQ(redis.step(), expected) << "seed " << seed << " after\n" << story;
      story += "  " + expected + "\n";
      if (i % kStepsBetweenDumps == 0) {
        // Both, because a walk leaves forgotten jobs alone once it has seen that they are gone.
        ASSERT_EQ(memory.check(), "") << "seed " << seed << " after\n" << story;
        ASSERT_EQ(redis.check(), "") << "seed " << seed << " after\n" << story;
        ASSERT_EQ(redis.dump(), memory.dump()) << "seed " << seed << " after\n" << story;
      }
    }
    ASSERT_EQ(redis.dump(), memory.dump()) << "seed " << seed << " after\n" << story;
    const QueueStats stats = redis_world->submitter()->stats().value();
    // What an autoscaler reads.
    ASSERT_EQ(entries_in_streams(), stats.queued + stats.running) << "seed " << seed << " after\n" << story;
    ASSERT_EQ(redis.drain(), "") << "seed " << seed << " after\n" << story;
    ASSERT_EQ(entries_in_streams(), 0U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace merope::queue
