#include "core/base/bounded_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace merope {
namespace {

TEST(BoundedQueue, FullQueueRefusesTryPushAndHoldsPushBack) {
  BoundedQueue<int> queue(1);
  EXPECT_TRUE(queue.push(1));
  EXPECT_FALSE(queue.try_push(2));
  std::atomic<bool> pushed{false};
  std::jthread producer([&] {
    EXPECT_TRUE(queue.push(2));
    pushed = true;
  });
  EXPECT_FALSE(pushed);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 2);
}

TEST(BoundedQueue, CloseLetsTheRestOutAndThenEndsPop) {
  BoundedQueue<int> queue(4);
  queue.push(1);
  queue.close();
  EXPECT_FALSE(queue.push(2));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, CloseWakesAWaitingConsumer) {
  BoundedQueue<int> queue(1);
  std::jthread consumer([&] { EXPECT_EQ(queue.pop(), std::nullopt); });
  queue.close();
}

}  // namespace
}  // namespace merope
