#include "server/submit_pool.h"

#include <pthread.h>

namespace merope::server {

SubmitPool::SubmitPool(std::size_t n_threads, std::size_t backlog) : tasks_(backlog) {
  for (std::size_t i = 0; i < n_threads; ++i) {
    threads_.emplace_back([this] {
      pthread_setname_np(pthread_self(), "submit");
      while (auto task = tasks_.pop()) {
        (*task)();
      }
    });
  }
}

SubmitPool::~SubmitPool() {
  tasks_.close();
  threads_.clear();
}

}  // namespace merope::server
