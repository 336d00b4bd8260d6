// Which backends this machine has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel_table.h"

namespace merope::kernels {

// CPU backends that run here, best first. The last one is always "scalar".
std::vector<const KernelTable*> cpu_backends();

struct BackendChoice {
  const KernelTable* table = nullptr;  // null: error says why
  std::string error;
};

// The backend of this name; the best one for an empty name.
BackendChoice choose_cpu_backend(std::string_view name);
// The one that the environment variable MEROPE_CPU_ISA names; the best one when it is not set.
BackendChoice choose_cpu_backend();

}  // namespace merope::kernels
