#include "worker/pipeline/free_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace merope::worker {
namespace {

// "MemAvailable:   123 kB"
std::optional<std::uint64_t> available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) {
      std::istringstream words(line.substr(13));
      std::uint64_t kib = 0;
      return words >> kib ? std::optional(kib * 1024) : std::nullopt;
    }
  }
  return std::nullopt;
}

// A file with one number; nothing when it holds a word ("max").
std::optional<std::uint64_t> number_in(const char* path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> free_memory(c10::Device device) {
  if (device.is_cpu()) {
    std::optional<std::uint64_t> free = available_bytes();
    const auto limit = number_in("/sys/fs/cgroup/memory.max");
    const auto used = number_in("/sys/fs/cgroup/memory.current");
    if (free && limit && used) {
      // Pages of mapped files count as used although they can be had back, so this errs on the safe side.
      free = std::min(*free, *limit > *used ? *limit - *used : 0);
    }
    return free;
  }
  auto* const allocator = c10::getDeviceAllocator(device.type());
  return allocator == nullptr ? std::nullopt : std::optional<std::uint64_t>(allocator->getMemoryInfo(device.index()).first);
}

}  // namespace merope::worker
