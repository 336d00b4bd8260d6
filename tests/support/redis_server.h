// A redis-server of the test's own: in a temporary folder, on a Unix socket (and a free TCP port if asked for), set up as in
// production. It dies with the object, and with the test program.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace merope::test {

// Used by one thread at a time, and started by one that outlives it. Whatever goes wrong ends the test program with a
// sentence.
class RedisServer {
 public:
  struct Options {
    bool tcp = false;
    std::vector<std::string> arguments = {};  // more of redis-server's command line, such as {"--requirepass", "secret"}
  };

  // Starts it and waits until it answers.
  RedisServer();
  explicit RedisServer(Options options);
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  // unix:///tmp/.../redis.sock, without a password
  std::string url() const { return "unix://" + socket_path(); }
  // redis://127.0.0.1:port; only with Options::tcp
  std::string tcp_url() const;

  // Where its append-only file is.
  const std::filesystem::path& folder() const { return folder_; }

  // SIGKILL, and waits for the end.
  void kill();
  // After kill(): on the same files. Returns when it answers.
  void start();
  // SIGSTOP and SIGCONT.
  void freeze();
  void thaw();

  // One command, typed as on a line without quotes ("CONFIG SET maxmemory 5mb"). Returns redis-server's answer: strings as
  // they are, errors with their text, arrays as one element per line.
  std::string command(const std::string& line);

 private:
  std::string socket_path() const { return (folder_ / "redis.sock").string(); }
  bool launch();

  Options options_;
  std::filesystem::path folder_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace merope::test
