#include "worker/weights/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

namespace merope::worker {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) {
      ::close(fd);
    }
  }
};

Error system_failure(const std::filesystem::path& path, const char* call, int number) {
  const ErrorCode code = number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kDataLoss;
  return {code, path.string() + ": " + call + ": " + std::generic_category().message(number)};
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) {
    return system_failure(path, "open", errno);
  }
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) {
    return system_failure(path, "fstat", errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kDataLoss, path.string() + ": is not a regular file"};
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    return std::shared_ptr<const MappedFile>(new MappedFile({}));
  }
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) {
    return system_failure(path, "mmap", errno);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile({static_cast<const std::byte*>(address), size}));
}

void MappedFile::release(std::span<const std::byte> part) const {
  // Whole pages only; the neighbours on the first and the last one may be in use.
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(part.data() + part.size()) / page * page;
  if (begin < end) {
    // Advice only: the mapping is private and never written, so a refusal changes nothing but the memory in use.
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    // The address and length are mmap's own, so munmap cannot fail.
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

}  // namespace merope::worker
