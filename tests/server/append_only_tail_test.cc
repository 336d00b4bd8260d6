// Tears the append-only file of a real Redis at every byte, and looks whether anything that was written after the repair is
// lost at the start after next.
#include "server/standalone/append_only_tail.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/redis_server.h"

namespace merope::standalone {
namespace {

namespace fs = std::filesystem;

class AppendOnlyTail : public ::testing::Test {
 protected:
  std::string log_folder() const { return redis_.folder() / "appendonlydir"; }
  fs::path newest() const {
    for (const auto& entry : fs::directory_iterator(log_folder())) {
      if (entry.path().string().find(".incr.aof") != std::string::npos) {
        return entry.path();
      }
    }
    return {};
  }
  // Two keys in one script, so that the file gets MULTI ... EXEC. No space may be in the script: command() splits there.
  std::string write_two(const std::string& a, const std::string& b) {
    return redis_.command("EVAL redis.call('SET',KEYS[1],'long\\r\\nEXEC\\r\\n');redis.call('SET',KEYS[2],'2');return'ok' 2 " +
                          a + " " + b);
  }
  std::string n_keys(const std::string& names) { return redis_.command("EXISTS " + names); }

  test::RedisServer redis_;
};

TEST_F(AppendOnlyTail, WhatIsWrittenAfterTheRepairStays) {
  redis_.command("SET first 1");
  const std::uintmax_t before = fs::file_size(newest());
  ASSERT_NE(write_two("a", "b").find("ok"), std::string::npos);
  redis_.kill();
  const fs::path file = newest();
  const fs::path whole = redis_.folder() / "whole.aof";
  fs::copy_file(file, whole);
  const std::uintmax_t size = fs::file_size(whole);
  ASSERT_GT(size, before + 50);

  EXPECT_EQ(cut_torn_tail(log_folder()).value(), 0U) << "nothing is torn yet";
  for (std::uintmax_t length = before; length < size; ++length) {
    fs::copy_file(whole, file, fs::copy_options::overwrite_existing);
    fs::resize_file(file, length);
    EXPECT_EQ(cut_torn_tail(log_folder()).value(), length - before) << "cut at byte " << length;
    EXPECT_EQ(fs::file_size(file), before);
  }
  // The whole way with Redis, for one cut within a command and one between two.
  const std::string text = [&] {
    std::ifstream stream(whole, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }();
  for (const std::uintmax_t length : {size - 20, std::uintmax_t{text.rfind("*1\r\n$4\r\nEXEC")}}) {
    fs::copy_file(whole, file, fs::copy_options::overwrite_existing);
    fs::resize_file(file, length);
    ASSERT_GT(cut_torn_tail(log_folder()).value(), 0U);
    redis_.start();
    EXPECT_EQ(n_keys("first a b"), "1") << "all of the script or nothing";
    ASSERT_NE(write_two("c", "d").find("ok"), std::string::npos);
    redis_.command("SET e 1");
    redis_.kill();
    EXPECT_EQ(cut_torn_tail(log_folder()).value(), 0U);
    redis_.start();
    EXPECT_EQ(n_keys("first c d e"), "4");
    redis_.kill();
  }
}

TEST_F(AppendOnlyTail, LeavesADamagedFileToRedis) {
  redis_.command("SET first 1");
  redis_.command("SET second 1");
  redis_.kill();
  const std::uintmax_t size = fs::file_size(newest());
  {
    std::fstream file(newest(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(30);
    file << "XXXX";
  }
  EXPECT_EQ(cut_torn_tail(log_folder()).value(), 0U);
  EXPECT_EQ(fs::file_size(newest()), size);
}

TEST(AppendOnlyTailWithoutFile, IsNothingToCut) {
  EXPECT_EQ(cut_torn_tail("/nowhere").value(), 0U);
}

}  // namespace
}  // namespace merope::standalone
