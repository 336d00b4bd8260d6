// Threads for CPU kernels.
#pragma once

#include <memory>

#include "kernels/parallel_for.h"

namespace merope::kernels {

// n_threads - 1 threads of its own plus the caller of run(). They wait without spinning between runs; the destructor joins
// them.
class ThreadPool final : public ParallelFor {
 public:
  explicit ThreadPool(int n_threads);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int n_threads() const override;
  void run(int n_items, const std::function<void(int item, int thread)>& body) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace merope::kernels
