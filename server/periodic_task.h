// A thread that does one thing again and again.
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace merope::server {

// Runs `work` at once and then `interval` after each end of it, until it is destroyed.
class PeriodicTask {
 public:
  PeriodicTask(const char* name, std::chrono::milliseconds interval, std::function<void()> work)
      : thread_([this, name, interval, task = std::move(work)](std::stop_token stop) {
          pthread_setname_np(pthread_self(), name);
          while (!stop.stop_requested()) {
            task();
            std::unique_lock lock(mutex_);
            wake_.wait_for(lock, stop, interval, [] { return false; });
          }
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace merope::server
