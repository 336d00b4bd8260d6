#include "client/cli/interrupts.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include "core/base/check.h"

namespace merope::cli {
namespace {

sigset_t interrupt_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

// Ends the program the way the signal would have.
void die_of(int signal) {
  const sigset_t set = interrupt_signals();
  std::signal(signal, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(signal);
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t set = interrupt_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  wake_ = eventfd(0, EFD_CLOEXEC);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  MEROPE_CHECK(wake_ >= 0 && signals_ >= 0, "no descriptors for signals");
  thread_ = std::jthread([this] { run(); });
}

Interrupts::~Interrupts() {
  const std::uint64_t one = 1;
  while (::write(wake_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
  ::close(wake_);
  ::close(signals_);
}

void Interrupts::handle(std::function<void(int)> handler) {
  const std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
  n_ = 0;
}

void Interrupts::stop_handling() {
  const std::lock_guard lock(mutex_);
  handler_ = nullptr;
}

void Interrupts::run() {
  std::array<pollfd, 2> watched{pollfd{wake_, POLLIN, 0}, pollfd{signals_, POLLIN, 0}};
  while (true) {
    if (::poll(watched.data(), watched.size(), -1) < 0) {
      continue;
    }
    if ((watched[0].revents & POLLIN) != 0) {
      return;
    }
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
      continue;
    }
    std::function<void(int)> handler;
    int n = 0;
    {
      const std::lock_guard lock(mutex_);
      handler = handler_;
      n = ++n_;
    }
    if (!handler) {
      die_of(static_cast<int>(info.ssi_signo));
      return;
    }
    handler(n);
  }
}

}  // namespace merope::cli
