// The threads that wait for the queue, so that gRPC's own never do.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "core/base/bounded_queue.h"

namespace merope::server {

// Internally locked. Tasks run in the order of their coming, as many at once as there are threads.
class SubmitPool {
 public:
  SubmitPool(std::size_t n_threads, std::size_t backlog);
  // Runs what was accepted, then joins.
  ~SubmitPool();
  SubmitPool(const SubmitPool&) = delete;
  SubmitPool& operator=(const SubmitPool&) = delete;

  // False when the backlog is full: the task was not taken. Never waits.
  bool try_run(std::function<void()> task) { return tasks_.try_push(std::move(task)); }
  std::size_t backlog() const { return tasks_.size(); }

 private:
  BoundedQueue<std::function<void()>> tasks_;
  std::vector<std::jthread> threads_;
};

}  // namespace merope::server
