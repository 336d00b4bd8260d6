#include "server/standalone/supervisor.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "core/base/exit_codes.h"
#include "core/base/log.h"

namespace merope::standalone {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The codes of core/base/exit_codes.h say what is wrong; another one (Redis ends with 1) says only that something is.
int our_code(int code) {
  return code >= kExitUsage && code <= kExitConfig ? code : kExitSoftware;
}

milliseconds since(steady_clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
}

}  // namespace

Supervisor::Supervisor(std::vector<ChildSpec> specs, SupervisorTiming timing) : timing_(timing) {
  for (ChildSpec& spec : specs) {
    children_.push_back({std::move(spec), std::nullopt, {}, {}, timing_.first_backoff});
  }
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals_, nullptr);
}

int Supervisor::run(const std::function<Status()>& on_ready) {
  std::optional<int> code = start_all();
  if (!code) {
    if (const Status status = on_ready(); !status) {
      log::error("start failed", {{"reason", status.error().message}});
      code = kExitNoInput;
    }
  }
  if (!code) {
    code = supervise();
  }
  stop_all();
  return *code;
}

Supervisor::Wait Supervisor::wait_for_signal(milliseconds timeout) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  timespec limit{};
  limit.tv_sec = seconds.count();
  limit.tv_nsec = std::chrono::nanoseconds(timeout - seconds).count();
  siginfo_t info{};
  const int signal = sigtimedwait(&signals_, &info, &limit);
  if (signal == SIGINT || signal == SIGTERM) {
    log::info("stop was asked for", {{"signal", signal}, {"by_pid", info.si_pid}});  // 0: the terminal's Ctrl-C
    return Wait::kStop;
  }
  return signal == SIGCHLD ? Wait::kChild : Wait::kTimeout;  // an interrupted wait is a short one
}

Status Supervisor::start(Child& child) {
  MEROPE_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::start(child.spec.command()));
  child.process.emplace(std::move(process));
  child.started_at = steady_clock::now();
  return {};
}

std::optional<int> Supervisor::start_all() {
  for (Child& child : children_) {
    if (const Status status = start(child); !status) {
      log::error("program did not start", {{"name", child.spec.name}, {"reason", status.error().message}});
      return kExitNoInput;
    }
    if (const auto code = wait_until_ready(child)) {
      return code;
    }
    log::info("program is ready",
              {{"name", child.spec.name}, {"child_pid", child.process->pid()}, {"ms", since(child.started_at).count()}});
  }
  return std::nullopt;
}

std::optional<int> Supervisor::wait_until_ready(Child& child) {
  while (!child.spec.ready()) {
    if (wait_for_signal(timing_.probe_interval) == Wait::kStop) {
      log::info("stopped while starting");
      return kExitOk;
    }
    if (const auto code = failed_child()) {
      return code;
    }
    if (since(child.started_at) > timing_.start_limit) {
      log::error("program did not become ready in time",
                 {{"name", child.spec.name}, {"ms", timing_.start_limit.count()}, {"see", child.spec.on_failure}});
      return kExitUnavailable;
    }
  }
  return failed_child();
}

std::optional<int> Supervisor::failed_child() {
  for (Child& child : children_) {
    if (child.process) {
      if (const auto code = child.process->exit_code()) {
        log::error("program ended while starting",
                   {{"name", child.spec.name}, {"exit_code", *code}, {"see", child.spec.on_failure}});
        return our_code(*code);
      }
    }
  }
  return std::nullopt;
}

int Supervisor::supervise() {
  while (wait_for_signal(until_next_restart()) != Wait::kStop) {
    restart_what_ended();
  }
  return kExitOk;
}

milliseconds Supervisor::until_next_restart() const {
  milliseconds wait = std::chrono::hours(1);
  for (const Child& child : children_) {
    if (!child.process) {
      wait = std::min(wait, std::chrono::ceil<milliseconds>(child.restart_at - steady_clock::now()));
    }
  }
  return std::max(wait, milliseconds(0));
}

void Supervisor::restart_what_ended() {
  for (Child& child : children_) {
    if (child.process) {
      if (const auto code = child.process->exit_code()) {
        if (since(child.started_at) > timing_.healthy_after) {
          child.backoff = timing_.first_backoff;
        }
        log::warn("program ended unexpectedly, it is started again",
                  {{"name", child.spec.name}, {"exit_code", *code}, {"in_ms", child.backoff.count()}});
        child.process.reset();
        child.restart_at = steady_clock::now() + child.backoff;
        child.backoff = std::min(2 * child.backoff, timing_.last_backoff);
      }
    } else if (steady_clock::now() >= child.restart_at) {
      if (const Status status = start(child); !status) {
        log::error("program did not start", {{"name", child.spec.name}, {"reason", status.error().message}});
        child.restart_at = steady_clock::now() + child.backoff;
      }
    }
  }
}

void Supervisor::stop_all() {
  bool patient = true;
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
    if (!child->process || child->process->exit_code()) {
      continue;
    }
    const auto began = steady_clock::now();
    child->process->send(SIGTERM);
    while (!child->process->exit_code()) {
      const milliseconds left = patient ? timing_.stop_limit - since(began) : milliseconds(0);
      if (left <= milliseconds(0)) {
        log::warn("program did not stop in time, it is killed", {{"name", child->spec.name}});
        child->process.reset();  // kills and waits
        break;
      }
      if (wait_for_signal(left) == Wait::kStop) {
        patient = false;
      }
    }
    log::info("program stopped", {{"name", child->spec.name}, {"ms", since(began).count()}});
  }
}

}  // namespace merope::standalone
