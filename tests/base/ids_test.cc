#include "core/base/ids.h"

#include <gtest/gtest.h>

namespace merope {
namespace {

TEST(Ids, RandomIdsDifferAndAreValid) {
  const std::string a = random_id("job");
  EXPECT_EQ(a.size(), 4U + 32U);
  EXPECT_TRUE(is_valid_id(a));
  EXPECT_NE(a, random_id("job"));
}

TEST(Ids, RefusesWhatCouldBreakAKeyOrALog) {
  EXPECT_FALSE(is_valid_id(""));
  EXPECT_FALSE(is_valid_id("a b"));
  EXPECT_FALSE(is_valid_id("a{b}"));
  EXPECT_FALSE(is_valid_id("a\n"));
  EXPECT_FALSE(is_valid_id(std::string(129, 'a')));
  EXPECT_TRUE(is_valid_id(std::string(128, 'a')));
}

}  // namespace
}  // namespace merope
