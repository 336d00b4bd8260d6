// Ctrl-C as an event. Construct before any thread is started: it blocks the signals, so that they come here and nowhere
// else.
#pragma once

#include <functional>
#include <mutex>
#include <thread>

namespace merope::cli {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // From now on `handler(n)` is called, on a thread of its own, for the n-th SIGINT or SIGTERM. Until then, and after
  // stop_handling(), a signal ends the program as usual.
  void handle(std::function<void(int)> handler);
  void stop_handling();

 private:
  void run();

  int wake_;     // eventfd: the destructor speaks
  int signals_;  // signalfd
  std::mutex mutex_;
  std::function<void(int)> handler_;
  int n_ = 0;
  std::jthread thread_;
};

}  // namespace merope::cli
