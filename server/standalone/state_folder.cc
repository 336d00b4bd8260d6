#include "server/standalone/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace merope::standalone {
namespace {

namespace fs = std::filesystem;

// As Redis reads a quoted word in its configuration file.
std::string quoted(const std::string& text) {
  std::string word = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      word += '\\';
    }
    word += c;
  }
  return word + '"';
}

Status write_whole(const std::string& path, const std::string& content) {
  const std::string unfinished = path + ".new";
  std::ofstream file(unfinished);
  file << content;
  file.close();
  if (!file || std::rename(unfinished.c_str(), path.c_str()) != 0) {
    return invalid_argument(path + " can not be written: " + std::strerror(errno));
  }
  return {};
}

}  // namespace

Result<StateFolder> StateFolder::open(const std::string& path) {
  std::error_code failure;
  const fs::path absolute = fs::absolute(path, failure).lexically_normal();
  fs::create_directories(absolute, failure);
  if (failure || !fs::is_directory(absolute)) {
    return invalid_argument("--state: folder " + absolute.string() + " can not be made: " + failure.message());
  }
  std::string folder = absolute.string();
  while (folder.size() > 1 && folder.back() == '/') {
    folder.pop_back();
  }
  if ((folder + "/redis.sock").size() >= sizeof(sockaddr_un::sun_path)) {
    return invalid_argument("--state: the path " + folder + " is too long for a Unix socket; choose a shorter one");
  }
  const int lock = ::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) {
    return invalid_argument("--state: " + folder + "/lock can not be opened: " + std::strerror(errno));
  }
  StateFolder state(folder, lock);
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::kAlreadyExists, "another merope-standalone runs on the state folder " + folder};
  }
  state.remove_addresses();  // of a run that was killed
  return state;
}

StateFolder::~StateFolder() {
  if (lock_ >= 0) {
    close(lock_);
  }
}

StateFolder::StateFolder(StateFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

Status StateFolder::write_redis_config() const {
  return write_whole(redis_config(),
                     "# Written by merope-standalone at every start.\n"
                     "port 0\n"
                     "unixsocket " +
                         quoted(redis_socket()) +
                         "\n"
                         "unixsocketperm 700\n"
                         "dir " +
                         quoted(path_) +
                         "\n"
                         "logfile " +
                         quoted(redis_log()) +
                         "\n"
                         "daemonize no\n"
                         "save \"\"\n"
                         "appendonly yes\n"
                         "appendfsync always\n"
                         "aof-load-truncated yes\n"
                         "maxmemory-policy noeviction\n"
                         "client-output-buffer-limit normal 64mb 16mb 30\n");
}

Status StateFolder::write_address(const std::string& address) const {
  return write_whole(address_file(), address + "\n");
}

std::string StateFolder::listening_address() const {
  std::ifstream file(listening_file());
  std::string address;
  std::getline(file, address);
  return address;
}

void StateFolder::remove_addresses() const {
  std::error_code ignored;
  fs::remove(listening_file(), ignored);
  fs::remove(address_file(), ignored);
}

}  // namespace merope::standalone
