#include "client/fragment_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "core/base/ids.h"

namespace merope::client {
namespace {

namespace fs = std::filesystem;

Error failed(std::string_view what, const fs::path& path, int error) {
  return {ErrorCode::kFailedPrecondition, fmt::format("{}: {}: {}", path.string(), what, std::strerror(error)), {}};
}

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  void reset(int fd = -1) {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    fd_ = fd;
  }

 private:
  int fd_;
};

Status write_all(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return failed("can not write", path, errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Status sync_folder(const fs::path& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) {
    return failed("can not make durable", folder, errno);
  }
  return {};
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Without a trailing slash, which would leave the path without a name.
fs::path normalised(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

fs::path temporary_beside(const fs::path& target) {
  return folder_of(target) / ("." + target.filename().string() + "." + random_id("x").substr(2, 8) + ".part");
}

class FragmentFile final : public FragmentStore {
 public:
  FragmentFile(fs::path target, fs::path temporary, int fd)
      : target_(std::move(target)), temporary_(std::move(temporary)), fd_(fd) {}
  ~FragmentFile() override {
    if (!committed_) {
      ::unlink(temporary_.c_str());
    }
  }

  Status add(std::string_view part, bool /*last_part*/) override { return write_all(fd_.get(), part, temporary_); }

  Status restart() override {
    if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) != 0) {
      return failed("can not begin again", temporary_, errno);
    }
    return {};
  }

  Status commit() override {
    if (::fsync(fd_.get()) != 0) {
      return failed("can not make durable", temporary_, errno);
    }
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
      return failed("can not be put in place", target_, errno);
    }
    committed_ = true;
    return sync_folder(folder_of(target_));
  }

 private:
  const fs::path target_;
  const fs::path temporary_;
  const Descriptor fd_;
  bool committed_ = false;
};

class FragmentFolder final : public FragmentStore {
 public:
  FragmentFolder(fs::path target, fs::path temporary, std::string extension)
      : target_(std::move(target)), temporary_(std::move(temporary)), extension_(std::move(extension)) {}
  ~FragmentFolder() override {
    if (!committed_) {
      std::error_code ignored;
      fs::remove_all(temporary_, ignored);
    }
  }

  Status add(std::string_view part, bool last_part) override {
    const fs::path path = temporary_ / fmt::format("frame_{:05}{}", n_complete_, extension_);
    if (fd_.get() < 0) {
      fd_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (fd_.get() < 0) {
        return failed("can not create", path, errno);
      }
    }
    MEROPE_RETURN_IF_ERROR(write_all(fd_.get(), part, path));
    if (last_part) {
      if (::fsync(fd_.get()) != 0) {
        return failed("can not make durable", path, errno);
      }
      fd_.reset();
      ++n_complete_;
    }
    return {};
  }

  Status restart() override {
    fd_.reset();
    n_complete_ = 0;
    std::error_code error;
    fs::remove_all(temporary_, error);
    if (error || !fs::create_directory(temporary_, error)) {
      return failed("can not begin again", temporary_, error.value());
    }
    return {};
  }

  Status commit() override {
    if (fd_.get() >= 0) {
      return Error{ErrorCode::kDataLoss, fmt::format("{}: frame {} is not complete", target_.string(), n_complete_), {}};
    }
    MEROPE_RETURN_IF_ERROR(sync_folder(temporary_));
    // Replaces an empty folder and nothing else.
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
      return failed("can not be put in place", target_, errno);
    }
    committed_ = true;
    return sync_folder(folder_of(target_));
  }

 private:
  const fs::path target_;
  const fs::path temporary_;
  const std::string extension_;
  Descriptor fd_{-1};
  int n_complete_ = 0;
  bool committed_ = false;
};

}  // namespace

Result<std::unique_ptr<FragmentStore>> open_fragment_file(const std::string& path) {
  const fs::path target = normalised(path);
  std::error_code ignored;
  if (path.empty() || path.back() == '/' || fs::is_directory(target, ignored)) {
    return failed("can not write a clip", path, EISDIR);
  }
  const fs::path temporary = temporary_beside(target);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    return failed("can not create a file beside it", path, errno);
  }
  return std::unique_ptr<FragmentStore>(std::make_unique<FragmentFile>(target, temporary, fd));
}

Result<std::unique_ptr<FragmentStore>> open_fragment_folder(const std::string& path, const std::string& extension) {
  const fs::path target = normalised(path);
  std::error_code error;
  if (target.empty()) {
    return failed("can not write frames", path, ENOENT);
  }
  if (fs::exists(target, error) && (!fs::is_directory(target, error) || !fs::is_empty(target, error))) {
    return failed("can not write frames", path, fs::is_directory(target, error) ? ENOTEMPTY : ENOTDIR);
  }
  const fs::path temporary = temporary_beside(target);
  if (!fs::create_directory(temporary, error)) {
    return failed("can not create a folder beside it", path, error.value());
  }
  return std::unique_ptr<FragmentStore>(std::make_unique<FragmentFolder>(target, temporary, extension));
}

}  // namespace merope::client
