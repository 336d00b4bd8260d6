// A program started by this one: in a process group of its own, so that a Ctrl-C at the terminal reaches only us, and killed
// by the kernel when we die, so that it never outlives us.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace merope::standalone {

// Used by the main thread only: the kernel's promise to kill the child is tied to the thread that started it.
class ChildProcess {
 public:
  // command[0] is the path of the program. The child's output goes to our stderr. kNotFound when there is no such program.
  static Result<ChildProcess> start(const std::vector<std::string>& command);

  // Kills what still runs.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  pid_t pid() const { return pid_; }
  // The exit code once it has ended (70 when a signal ended it), empty while it runs. Does not wait.
  std::optional<int> exit_code();
  void send(int signal);

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_ = -1;  // -1: moved from
  std::optional<int> exit_code_;
};

// The path of a program: beside `folder`, or on PATH when folder is empty. kNotFound.
Result<std::string> find_program(const std::string& folder, const std::string& name);

}  // namespace merope::standalone
