#include "core/queue/redis/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace merope::queue::redis {
namespace {

TEST(RedisAddress, ReadsHostPortSocketAndPassword) {
  EXPECT_EQ(parse_address("redis://queue:6380")->text(), "redis://queue:6380");
  EXPECT_EQ(parse_address("redis://queue")->text(), "redis://queue:6379");
  EXPECT_EQ(parse_address("redis://queue:6380/")->text(), "redis://queue:6380");
  EXPECT_EQ(parse_address("redis://[::1]:7000")->host, "::1");
  EXPECT_EQ(parse_address("redis://[::1]:7000")->text(), "redis://[::1]:7000");
  EXPECT_EQ(parse_address("unix:///run/merope/redis.sock")->path, "/run/merope/redis.sock");
  EXPECT_EQ(parse_address("redis://:p@ss:word@queue:1")->password, "p@ss:word");
  EXPECT_EQ(parse_address("redis://:p@ss:word@queue:1")->text(), "redis://queue:1");
  EXPECT_EQ(parse_address("unix://:secret@/s")->password, "secret");
}

TEST(RedisAddress, RefusesWhatItDoesNotUnderstandAndKeepsThePasswordSecret) {
  for (const char* url : {"",
                          "queue:6379",
                          "rediss://queue:6379",
                          "redis://",
                          "redis://:secret@",
                          "redis://:secret@queue:port",
                          "redis://:secret@queue:0",
                          "redis://:secret@queue:65536",
                          "redis://:secret@queue:6379x",
                          "redis://:secret@queue:",
                          "redis://:secret@queue:6379/2",
                          "redis://user:secret@queue",
                          "redis://:secret@[::1",
                          "unix://",
                          "unix://relative/path",
                          "unix://:secret@relative"}) {
    const Result<Address> address = parse_address(url);
    ASSERT_FALSE(address) << url;
    EXPECT_EQ(address.error().code, ErrorCode::kInvalidArgument) << url;
    EXPECT_THAT(address.error().message, testing::HasSubstr("redis://[:password@]host[:port]"));
    EXPECT_THAT(address.error().message, testing::Not(testing::HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace merope::queue::redis
