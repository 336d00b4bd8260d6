#include "kernels/dispatch.h"

#include <cstdlib>

#include "kernels/cpu/scalar/scalar_kernels.h"

namespace merope::kernels {

std::vector<const KernelTable*> cpu_backends() {
  return {&scalar_kernels()};
}

BackendChoice choose_cpu_backend(std::string_view name) {
  const std::vector<const KernelTable*> backends = cpu_backends();
  if (name.empty()) {
    return {backends.front(), ""};
  }
  std::string known;
  for (const KernelTable* backend : backends) {
    if (backend->name == name) {
      return {backend, ""};
    }
    known += (known.empty() ? "" : ", ") + std::string(backend->name);
  }
  return {nullptr, "MEROPE_CPU_ISA names '" + std::string(name) + "', this program has on this machine: " + known};
}

BackendChoice choose_cpu_backend() {
  const char* name = std::getenv("MEROPE_CPU_ISA");
  return choose_cpu_backend(std::string_view(name == nullptr ? "" : name));
}

}  // namespace merope::kernels
