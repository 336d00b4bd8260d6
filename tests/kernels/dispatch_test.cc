#include "kernels/dispatch.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace merope::kernels {
namespace {

TEST(Dispatch, TheLastBackendIsTheScalarOne) {
  const std::vector<const KernelTable*> backends = cpu_backends();
  ASSERT_FALSE(backends.empty());
  EXPECT_EQ(backends.back()->name, "scalar");
  EXPECT_EQ(choose_cpu_backend("").table, backends.front());
}

TEST(Dispatch, EveryBackendIsFoundByItsName) {
  for (const KernelTable* backend : cpu_backends()) {
    EXPECT_EQ(choose_cpu_backend(backend->name).table, backend);
  }
}

TEST(Dispatch, AnAbsentLevelFailsWithASentence) {
  const BackendChoice choice = choose_cpu_backend("avx1024");
  EXPECT_EQ(choice.table, nullptr);
  EXPECT_EQ(choice.error.substr(0, 62), "MEROPE_CPU_ISA names 'avx1024', this program has on this machi");
  EXPECT_NE(choice.error.find("scalar"), std::string::npos);
}

TEST(Dispatch, TheEnvironmentDecides) {
  ASSERT_EQ(setenv("MEROPE_CPU_ISA", "scalar", 1), 0);
  ASSERT_NE(choose_cpu_backend().table, nullptr);
  EXPECT_EQ(choose_cpu_backend().table->name, "scalar");
  ASSERT_EQ(setenv("MEROPE_CPU_ISA", "neon9", 1), 0);
  EXPECT_EQ(choose_cpu_backend().table, nullptr);
  ASSERT_EQ(unsetenv("MEROPE_CPU_ISA"), 0);
  EXPECT_EQ(choose_cpu_backend().table, cpu_backends().front());
}

}  // namespace
}  // namespace merope::kernels
