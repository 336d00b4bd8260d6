// A file of its own, because its variable changes every thread of the test program.
#include <gtest/gtest.h>

#include "core/base/admin_http.h"
#include "core/base/metrics.h"

namespace merope {
namespace {

// As much as a large library keeps for each thread: more than the stack that the HTTP library asks for.
thread_local volatile char large[512U << 10U];

TEST(AdminHttp, StartsBesideLibrariesWithMuchThreadLocalData) {
  large[sizeof large - 1] = 1;
  const MetricsRegistry registry;
  const auto admin = AdminHttp::start({"127.0.0.1", 0}, registry, {[] { return ""; }, [] { return ""; }});
  ASSERT_TRUE(admin) << admin.error().message;
  EXPECT_GT((*admin)->port(), 0);
}

}  // namespace
}  // namespace merope
