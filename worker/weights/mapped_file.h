// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "core/base/result.h"

namespace merope::worker {

// Immutable; any thread. The bytes stay valid as long as the object lives. Whoever replaces weights under a running worker
// must write a new file and rename it: a mapped file that is cut short ends the process with SIGBUS when it is read.
class MappedFile {
 public:
  // kNotFound when there is no such file, kDataLoss when it cannot be opened or mapped. An empty file is an empty span.
  static Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

  // Tells the kernel that a part of bytes() is not needed soon: its pages no longer count as the process' memory and are
  // read anew when they are touched. For what has been copied elsewhere.
  void release(std::span<const std::byte> part) const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace merope::worker
