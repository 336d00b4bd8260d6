#include "worker/model/weight_source.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/torch/golden.h"
#include "tests/support/torch/hash_weights.h"

namespace merope::worker {
namespace {

TEST(HashWeights, AgreeWithThePublishedCheckValues) {
  EXPECT_EQ(test::hash_value(0, 0), 0.7666215896606445);
  EXPECT_EQ(test::hash_value(0, 3), -0.26812267303466797);
  EXPECT_EQ(test::hash_value(1000, 1), 0.027844786643981934);
  EXPECT_EQ(test::hash_value(9000, 2), -0.6015641689300537);
}

TEST(WeightReader, OneMessageNamesEverythingThatIsWrong) {
  test::MapWeightSource source({{"good", at::ones({2, 3})},
                                {"odd_shape", at::ones({4})},
                                {"broken", at::full({2}, std::numeric_limits<float>::quiet_NaN())},
                                {"stranger", at::ones({1})}});
  WeightReader reader(source, at::kCPU, at::kFloat);
  EXPECT_TRUE(test::near(reader.tensor("good", {2, 3}), at::ones({2, 3}), 0));
  EXPECT_EQ(reader.tensor("odd_shape", {5}).size(0), 5);
  reader.tensor("broken", {2});
  reader.tensor("absent", {1});
  const Status status = reader.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kDataLoss);
  for (const char* text :
       {"odd_shape has shape [4] instead of [5]", "broken holds NaN", "absent is missing", "stranger is unexpected"}) {
    EXPECT_NE(status.error().message.find(text), std::string::npos) << status.error().message;
  }
}

TEST(WeightReader, ConvertsToTheWantedType) {
  test::MapWeightSource source({{"w", at::ones({2}, at::kBFloat16)}});
  WeightReader reader(source, at::kCPU, at::kFloat);
  EXPECT_EQ(reader.tensor("w", {2}).scalar_type(), at::kFloat);
  EXPECT_TRUE(reader.finish());
}

}  // namespace
}  // namespace merope::worker
