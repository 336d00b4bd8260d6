#include "worker/pipeline/exceptions.h"

#include <gtest/gtest.h>

#include "core/base/result.h"

namespace merope::worker {
namespace {

template <typename Exception>
Error error_of(const Exception& thrown) {
  const Result<int> result = errors_from_exceptions("loading x", [&]() -> Result<int> { throw thrown; });
  return result.error();
}

TEST(Exceptions, BecomeErrorsThatSayWhatToDoNext) {
  const c10::SourceLocation here{"f", "x.cc", 1};
  EXPECT_EQ(error_of(c10::AcceleratorError(here, 700, "an illegal memory access")).code, ErrorCode::kUnavailable)
      << "the worker ends and another process takes over";
  EXPECT_EQ(error_of(c10::OutOfMemoryError(here, "tried to allocate 3 GiB")).code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(error_of(std::bad_alloc()).code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(error_of(c10::Error(here, "shapes differ")).code, ErrorCode::kInternal);
  EXPECT_EQ(error_of(std::runtime_error("anything")).message, "loading x: anything");
}

}  // namespace
}  // namespace merope::worker
