#include "core/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace merope {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) {
    return invalid_argument("number: 7 is odd");
  }
  return number / 2;
}

Result<std::string> half_as_text(int number) {
  MEROPE_ASSIGN_OR_RETURN(const int value, half(number));
  return std::to_string(value);
}

Status only_even(int number) {
  MEROPE_RETURN_IF_ERROR(half(number));
  return {};
}

TEST(Result, MacrosPassValuesAndErrorsOn) {
  EXPECT_EQ(half_as_text(8).value(), "4");
  EXPECT_EQ(half_as_text(7).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(only_even(2));
  EXPECT_EQ(only_even(3).error().message, "number: 7 is odd");
}

TEST(Result, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> value = *std::move(result);
  EXPECT_EQ(*value, 5);
}

TEST(ResultDeathTest, ValueOfAnErrorEndsTheProcessWithItsMessage) {
  EXPECT_DEATH(static_cast<void>(half(7).value()), "7 is odd");
}

TEST(Error, InvalidFieldsListsEveryViolation) {
  const Error error = invalid_fields({{"a.b", "is missing"}, {"c[3]", "is not finite"}});
  EXPECT_EQ(error.message, "a.b: is missing; c[3]: is not finite");
  EXPECT_EQ(error.violations.size(), 2U);
}

TEST(Error, RetryableIsDecidedByTheCode) {
  EXPECT_TRUE(is_retryable(ErrorCode::kUnavailable));
  EXPECT_FALSE(is_retryable(ErrorCode::kInvalidArgument));
  EXPECT_FALSE(is_retryable(ErrorCode::kDataLoss));
}

}  // namespace
}  // namespace merope
