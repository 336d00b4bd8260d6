// Starts programs one after the other, keeps them running, and stops them in the opposite order.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "server/standalone/child_process.h"

namespace merope::standalone {

struct ChildSpec {
  std::string name;                                   // "worker", in messages
  std::function<std::vector<std::string>()> command;  // asked at every start; [0] is the path of the program
  std::function<bool()> ready;                        // asked again and again until true; must answer at once
  std::string on_failure;  // what an operator should look at, in the message about a failed start; may be empty
};

struct SupervisorTiming {
  std::chrono::milliseconds start_limit{120'000};  // for one program to become ready
  std::chrono::milliseconds stop_limit{30'000};    // for one program to stop before it is killed
  std::chrono::milliseconds first_backoff{1'000};  // before a restart; doubles up to the last
  std::chrono::milliseconds last_backoff{30'000};
  std::chrono::milliseconds healthy_after{60'000};  // a program that ran so long starts again at the first backoff
  std::chrono::milliseconds probe_interval{25};
};

// Main thread of a process whose only thread it is. It blocks SIGINT, SIGTERM and SIGCHLD and waits for them.
class Supervisor {
 public:
  Supervisor(std::vector<ChildSpec> specs, SupervisorTiming timing);

  // Starts each program when the one before is ready, calls `on_ready`, then runs until SIGINT or SIGTERM: stops all in the
  // opposite order and returns 0. A second signal kills what is left. A program that ends while starting up, or is not ready
  // in time, ends everything; its exit code is returned (70 if it is none of our own). One that ends later is started again.
  int run(const std::function<Status()>& on_ready);

 private:
  struct Child {
    ChildSpec spec;
    std::optional<ChildProcess> process;
    std::chrono::steady_clock::time_point started_at;
    std::chrono::steady_clock::time_point restart_at;
    std::chrono::milliseconds backoff;
  };
  enum class Wait { kStop, kChild, kTimeout };

  Wait wait_for_signal(std::chrono::milliseconds timeout) const;
  std::optional<int> start_all();  // empty: all are ready
  std::optional<int> wait_until_ready(Child& child);
  Status start(Child& child);
  std::optional<int> failed_child();
  int supervise();
  void restart_what_ended();
  std::chrono::milliseconds until_next_restart() const;
  void stop_all();

  std::vector<Child> children_;
  const SupervisorTiming timing_;
  sigset_t signals_;
};

}  // namespace merope::standalone
