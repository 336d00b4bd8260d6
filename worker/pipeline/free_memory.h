// How much memory can still be taken.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace merope::worker {

// Bytes: of the CPU what the kernel can give without swapping, within the limit of the process' control group; of a CUDA
// device what its driver reports as free. Nothing where that can not be told.
std::optional<std::uint64_t> free_memory(c10::Device device);

}  // namespace merope::worker
