#include "core/queue/memory_queue.h"
#include "tests/queue/world.h"

namespace merope::queue {
namespace {

class MemoryWorld final : public World {
 public:
  explicit MemoryWorld(const QueueLimits& limits)
      : queue_(MemoryQueue::Options{limits, [this] { return now_ms(); }, [this] { return next_id(); }}) {}
  std::unique_ptr<JobSubmitter> submitter() override { return queue_.submitter(); }
  std::unique_ptr<JobConsumer> consumer(const std::string& worker) override { return queue_.consumer(worker); }
  std::unique_ptr<JobEventSource> events() override { return queue_.events(); }

 private:
  MemoryQueue queue_;
};

}  // namespace

std::unique_ptr<World> make_memory_world(const QueueLimits& limits) {
  return std::make_unique<MemoryWorld>(limits);
}

}  // namespace merope::queue
