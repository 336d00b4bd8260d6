// Owners of what hiredis and the kernel hand out.
#pragma once

#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "core/base/check.h"

namespace merope::queue::redis {

struct ContextFree {
  void operator()(redisContext* context) const { redisFree(context); }
};
using ContextPtr = std::unique_ptr<redisContext, ContextFree>;

struct ReplyFree {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using ReplyPtr = std::unique_ptr<redisReply, ReplyFree>;

// Ends a poll() of another thread. Any thread may signal.
class Wakeup {
 public:
  Wakeup() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) { MEROPE_CHECK(fd_ >= 0, "eventfd: no descriptor left"); }
  ~Wakeup() { close(fd_); }
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  int fd() const { return fd_; }
  void signal() const { eventfd_write(fd_, 1); }
  // Forgets the signals so far. Whether there was one.
  bool drain() const {
    eventfd_t count = 0;
    return eventfd_read(fd_, &count) == 0;
  }
  // Waits for a signal, which stays. Whether it came in time.
  bool wait_for(std::chrono::milliseconds timeout) const {
    pollfd wanted{fd_, POLLIN, 0};
    return poll(&wanted, 1, static_cast<int>(timeout.count())) > 0;
  }

 private:
  int fd_;
};

}  // namespace merope::queue::redis
