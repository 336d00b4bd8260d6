#include "kernels/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace merope::kernels {

struct ThreadPool::Impl {
  using Body = std::function<void(int item, int thread)>;

  std::mutex mutex;
  std::condition_variable work;  // a new round, or the end
  std::condition_variable done;  // no worker is in the round any more
  // Guarded by mutex.
  std::uint64_t round = 0;
  int n_working = 0;
  bool stopping = false;
  const Body* body = nullptr;
  int n_items = 0;

  std::atomic<int> next{0};
  std::vector<std::jthread> threads;

  void take_items(const Body& run_item, int end, int thread) {
    for (int item = next.fetch_add(1); item < end; item = next.fetch_add(1)) {
      run_item(item, thread);
    }
  }

  void work_until_stopped(int thread) {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stopping || round != seen; });
      if (stopping) {
        return;
      }
      seen = round;
      const Body& run_item = *body;
      const int end = n_items;
      lock.unlock();
      take_items(run_item, end, thread);
      lock.lock();
      if (--n_working == 0) {
        done.notify_one();
      }
    }
  }
};

ThreadPool::ThreadPool(int n_threads) : impl_(std::make_unique<Impl>()) {
  for (int thread = 1; thread < std::max(n_threads, 1); ++thread) {
    impl_->threads.emplace_back([impl = impl_.get(), thread] { impl->work_until_stopped(thread); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->work.notify_all();
}

int ThreadPool::n_threads() const {
  return static_cast<int>(impl_->threads.size()) + 1;
}

void ThreadPool::run(int n_items, const std::function<void(int item, int thread)>& body) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->body = &body;
    impl_->n_items = n_items;
    impl_->n_working = static_cast<int>(impl_->threads.size());
    impl_->next = 0;
    ++impl_->round;
  }
  impl_->work.notify_all();
  impl_->take_items(body, n_items, 0);
  std::unique_lock lock(impl_->mutex);
  impl_->done.wait(lock, [&] { return impl_->n_working == 0; });
}

}  // namespace merope::kernels
