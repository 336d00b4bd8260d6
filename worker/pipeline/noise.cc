#include "worker/pipeline/noise.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace merope::worker {

at::Tensor seeded_noise(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::TensorOptions(at::kFloat));
}

}  // namespace merope::worker
