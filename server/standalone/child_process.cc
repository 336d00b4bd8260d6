#include "server/standalone/child_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

#include "core/base/exit_codes.h"

namespace merope::standalone {
namespace {

// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become(char* const* argv, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(kExitSoftware);  // the parent died before the line above
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  execv(argv[0], argv);
  constexpr int kNotExecutable = 127;
  _exit(kNotExecutable);
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& command) {
  if (access(command.front().c_str(), X_OK) != 0) {
    return not_found(command.front() + " can not be run: " + std::strerror(errno));
  }
  std::vector<char*> argv;
  for (const std::string& argument : command) {
    argv.push_back(const_cast<char*>(argument.c_str()));  // execv does not write to them
  }
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return internal_error(std::string("fork: ") + std::strerror(errno));
  }
  if (pid == 0) {
    become(argv.data(), parent);
  }
  return ChildProcess(pid);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && !exit_code()) {
    send(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), exit_code_(std::exchange(other.exit_code_, std::nullopt)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(exit_code_, other.exit_code_);
  return *this;
}

std::optional<int> ChildProcess::exit_code() {
  if (!exit_code_) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : kExitSoftware;
    }
  }
  return exit_code_;
}

void ChildProcess::send(int signal) {
  if (!exit_code_) {  // else the number may be another process's by now
    kill(pid_, signal);
  }
}

Result<std::string> find_program(const std::string& folder, const std::string& name) {
  if (name.find('/') != std::string::npos || !folder.empty()) {
    const std::string path = name.find('/') != std::string::npos ? name : folder + "/" + name;
    if (access(path.c_str(), X_OK) != 0) {
      return not_found(path + " is not there or not executable");
    }
    return path;
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string candidate; std::getline(folders, candidate, ':');) {
    if (!candidate.empty() && access((candidate + "/" + name).c_str(), X_OK) == 0) {
      return candidate + "/" + name;
    }
  }
  return not_found(name + " is not on PATH");
}

}  // namespace merope::standalone
