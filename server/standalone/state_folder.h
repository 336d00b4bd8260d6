// The folder that a service on one machine lives in: Redis' files and socket, a lock, and the address of the running server.
#pragma once

#include <string>

#include "core/base/result.h"

namespace merope::standalone {

class StateFolder {
 public:
  // Makes the folder if it is not there and locks it until the object is destroyed. Errors: kAlreadyExists (another
  // merope-standalone uses it), kInvalidArgument (can not be made, or its path is too long for a Unix socket).
  static Result<StateFolder> open(const std::string& path);
  ~StateFolder();
  StateFolder(StateFolder&& other) noexcept;
  StateFolder& operator=(StateFolder&&) = delete;

  std::string redis_socket() const { return path_ + "/redis.sock"; }
  std::string redis_config() const { return path_ + "/redis.conf"; }
  std::string redis_log() const { return path_ + "/redis.log"; }
  std::string append_only_folder() const { return path_ + "/appendonlydir"; }  // Redis' own default name
  std::string listening_file() const { return path_ + "/server.listening"; }  // written by merope-server
  std::string address_file() const { return path_ + "/server.address"; }      // there while everything is ready
  const std::string& path() const { return path_; }

  // What private Redis needs to keep every accepted job: appended to disk before it answers, no TCP port, nothing evicted.
  Status write_redis_config() const;
  // Publishes the server's address for others, whole or not at all.
  Status write_address(const std::string& address) const;
  // The address that merope-server listens on; empty while it has not written it.
  std::string listening_address() const;
  void remove_addresses() const;

 private:
  StateFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;  // absolute
  int lock_ = -1;
};

}  // namespace merope::standalone
