// A program under test as a process of its own.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace merope::test {

inline std::string binary_dir() {
  const char* folder = std::getenv("MEROPE_BINARY_DIR");
  return folder == nullptr ? "." : folder;
}

// Ends with the object, and with this program.
class ChildProcess {
 public:
  // `stderr_file`: where its log goes; empty: to ours.
  ChildProcess(std::string program, std::vector<std::string> flags, const std::string& stderr_file = {}) {
    flags.insert(flags.begin(), std::move(program));
    std::vector<char*> arguments;
    for (std::string& flag : flags) {
      arguments.push_back(flag.data());
    }
    arguments.push_back(nullptr);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ != 0) {
      return;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!stderr_file.empty()) {
      ::dup2(::open(stderr_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    }
    if (::getppid() == parent) {
      ::execv(arguments[0], arguments.data());
    }
    ::_exit(127);
  }
  ~ChildProcess() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void send(int signal) const { ::kill(pid_, signal); }
  // Waits for its end: the exit code, or minus the signal that killed it.
  int wait() {
    int state = 0;
    ::waitpid(pid_, &state, 0);
    pid_ = -1;
    return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace merope::test
