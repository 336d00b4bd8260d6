#include "server/server_config.h"

#include <gtest/gtest.h>

namespace merope::server {
namespace {

TEST(ServerConfig, DefaultsHold) {
  ServerConfig config;
  const char* argv[] = {"merope-server"};
  EXPECT_FALSE(read_config(1, argv, config));
  EXPECT_TRUE(config.problems().empty());
  EXPECT_TRUE(is_loopback(config.listen));
}

TEST(ServerConfig, ReadsSecondsAndLimits) {
  ServerConfig config;
  const char* argv[] = {"merope-server", "--keep-output-seconds", "1.5", "--max-queued-jobs", "7", "--reflection", "off"};
  EXPECT_FALSE(read_config(7, argv, config));
  EXPECT_EQ(config.queue.keep_output.count(), 1500);
  EXPECT_EQ(config.queue.max_queued, 7U) << "the queue refuses what capabilities say it refuses";
  EXPECT_EQ(config.reflection, Reflection::kOff);
}

TEST(ServerConfig, NamesEveryProblemByItsFlag) {
  ServerConfig config;
  config.listen = "nowhere";
  config.heartbeat = std::chrono::milliseconds(0);
  config.limits.max_message_bytes = 1;
  const auto problems = config.problems();
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_TRUE(problems[0].starts_with("--listen: \"nowhere\""));
  EXPECT_TRUE(problems[1].starts_with("--heartbeat-seconds"));
  EXPECT_TRUE(problems[2].starts_with("--max-message-bytes"));
}

TEST(ServerConfig, KnowsLoopbackFromTheRest) {
  EXPECT_TRUE(is_loopback("localhost:1"));
  EXPECT_TRUE(is_loopback("[::1]:1"));
  EXPECT_TRUE(is_loopback("unix:/run/merope.sock"));
  EXPECT_FALSE(is_loopback("0.0.0.0:1"));
  EXPECT_FALSE(is_loopback("[::]:1"));
}

}  // namespace
}  // namespace merope::server
