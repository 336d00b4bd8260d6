// The starting noise of a clip.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace merope::worker {

// Standard normal fp32 numbers in one draw of the whole tensor from a fresh CPU generator, whatever device the model runs
// on: a seed gives the clip that the same seed gives in PyTorch with a CPU generator, and no other random draw is made. That
// generator looks at the low 32 bits of a seed.
at::Tensor seeded_noise(at::IntArrayRef shape, std::uint64_t seed);

}  // namespace merope::worker
