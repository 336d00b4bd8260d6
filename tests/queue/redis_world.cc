#include "tests/queue/redis_world.h"

#include <gtest/gtest.h>

#include "core/queue/queue_factory.h"
#include "tests/queue/contract.h"

namespace merope::queue {
namespace {

class RedisWorld final : public World {
 public:
  explicit RedisWorld(const QueueLimits& limits) {
    redis_world_server().command("FLUSHALL");
    RedisQueueOptions options;
    options.limits = limits;
    options.now_ms = [this] { return now_ms(); };
    options.new_job_id = [this] { return next_id(); };
    queue_ = open_queue(redis_world_server().url(), options).value();
  }
  std::unique_ptr<JobSubmitter> submitter() override { return queue_->submitter(); }
  std::unique_ptr<JobConsumer> consumer(const std::string& worker) override { return queue_->consumer(worker); }
  std::unique_ptr<JobEventSource> events() override { return queue_->events(); }

 private:
  std::unique_ptr<RedisQueue> queue_;
};

}  // namespace

test::RedisServer& redis_world_server() {
  // The rules are the same without a disk write per change, and the tests quicker.
  static test::RedisServer server({.arguments = {"--appendfsync", "everysec"}});
  return server;
}

std::unique_ptr<World> make_redis_world(const QueueLimits& limits) {
  return std::make_unique<RedisWorld>(limits);
}

INSTANTIATE_TEST_SUITE_P(Redis, QueueContract, testing::Values(&make_redis_world));

}  // namespace merope::queue
