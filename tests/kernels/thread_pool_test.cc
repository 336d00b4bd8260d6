#include "kernels/cpu/thread_pool.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace merope::kernels {
namespace {

TEST(ThreadPool, EveryItemOnceInEveryRound) {
  for (const int n_threads : {1, 2, 5}) {
    ThreadPool pool(n_threads);
    ASSERT_EQ(pool.n_threads(), n_threads);
    for (const int n_items : {0, 1, 3, 100, 1000}) {
      std::vector<std::atomic<int>> counts(static_cast<std::size_t>(n_items));
      std::atomic<int> wrong_threads{0};
      pool.run(n_items, [&](int item, int thread) {
        ++counts[static_cast<std::size_t>(item)];
        wrong_threads += thread < 0 || thread >= n_threads ? 1 : 0;
      });
      for (const std::atomic<int>& count : counts) {
        EXPECT_EQ(count, 1);
      }
      EXPECT_EQ(wrong_threads, 0);
    }
  }
}

// Two items that run at the same time never have the same thread number: it may index scratch memory.
TEST(ThreadPool, ThreadNumbersAreNotShared) {
  constexpr int kThreads = 4;
  ThreadPool pool(kThreads);
  std::vector<std::atomic<bool>> busy(kThreads);
  std::atomic<int> clashes{0};
  for (int round = 0; round < 50; ++round) {
    pool.run(64, [&](int, int thread) {
      clashes += busy[static_cast<std::size_t>(thread)].exchange(true) ? 1 : 0;
      busy[static_cast<std::size_t>(thread)] = false;
    });
  }
  EXPECT_EQ(clashes, 0);
}

// All threads take part: none can leave before all have arrived.
TEST(ThreadPool, AllThreadsWorkAtOnce) {
  constexpr int kThreads = 3;
  ThreadPool pool(kThreads);
  std::atomic<int> arrived{0};
  pool.run(kThreads, [&](int, int) {
    ++arrived;
    while (arrived < kThreads) {
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(arrived, kThreads);
}

TEST(ThreadPool, NoThreadsMeansTheCaller) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.n_threads(), 1);
  const std::thread::id caller = std::this_thread::get_id();
  pool.run(3, [&](int, int) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

}  // namespace
}  // namespace merope::kernels
