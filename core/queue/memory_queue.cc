#include "core/queue/memory_queue.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/queue/memory_state.h"

namespace merope::queue {
namespace {

std::int64_t system_now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// What one event source was told and has not fetched. Guarded by Shared::mutex.
struct Inbox {
  std::vector<std::string> woken;
  bool interrupted = false;
};

}  // namespace

struct MemoryQueue::Shared {
  explicit Shared(Options given) : options(std::move(given)), state(options.limits) {
    if (!options.now_ms) {
      options.now_ms = system_now_ms;
    }
    if (!options.new_job_id) {
      options.new_job_id = [] { return random_id("job"); };
    }
  }

  // Runs one operation on the state and tells whoever waits for its effects.
  template <typename Operation>
  auto locked(Operation operation) {
    const std::lock_guard lock(mutex);
    auto result = operation(state, options.now_ms());
    deliver();
    return result;
  }

  // Needs the lock.
  void deliver() {
    const std::vector<std::string> woken = state.take_woken();
    for (const std::shared_ptr<Inbox>& inbox : inboxes) {
      for (const std::string& id : woken) {
        if (std::find(inbox->woken.begin(), inbox->woken.end(), id) == inbox->woken.end()) {
          inbox->woken.push_back(id);
        }
      }
    }
    changed.notify_all();
  }

  Options options;
  std::mutex mutex;
  std::condition_variable_any changed;
  MemoryState state;
  std::vector<std::shared_ptr<Inbox>> inboxes;
};

namespace {

using SharedPtr = std::shared_ptr<MemoryQueue::Shared>;

class MemorySubmitter final : public JobSubmitter {
 public:
  explicit MemorySubmitter(SharedPtr shared) : shared_(std::move(shared)) {}

  Result<SubmitOutcome> submit(const NewJob& job) override {
    return shared_->locked([&](auto& state, auto now) { return state.submit(job, shared_->options.new_job_id(), now); });
  }
  Result<JobRecord> cancel(const std::string& job_id) override {
    return shared_->locked([&](auto& state, auto now) { return state.cancel(job_id, now); });
  }
  Result<JobRecord> get(const std::string& job_id) override {
    return shared_->locked([&](auto& state, auto now) { return state.get(job_id, now); });
  }
  Result<std::vector<JobRecord>> list(std::optional<JobState> wanted, std::size_t limit) override {
    return shared_->locked([&](auto& state, auto now) { return state.list(wanted, limit, now); });
  }
  Result<std::uint32_t> place(const std::string& job_id) override {
    return shared_->locked([&](auto& state, auto) { return state.place(job_id); });
  }
  Result<QueueStats> stats() override {
    return shared_->locked([](auto& state, auto now) { return state.stats(now); });
  }
  Result<std::vector<WorkerRecord>> workers() override {
    return shared_->locked([](auto& state, auto now) { return state.workers(now); });
  }
  Result<std::vector<std::string>> known_models() override {
    return shared_->locked([](auto& state, auto) { return state.known_models(); });
  }
  Result<std::size_t> reconcile() override {
    return shared_->locked([](auto& state, auto now) { return state.reconcile(now); });
  }

 private:
  SharedPtr shared_;
};

class MemoryConsumer final : public JobConsumer {
 public:
  MemoryConsumer(SharedPtr shared, std::string worker) : shared_(std::move(shared)), worker_(std::move(worker)) {}

  Result<std::optional<ClaimedJob>> claim(std::chrono::milliseconds timeout, std::stop_token stop) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    std::unique_lock lock(shared_->mutex);
    while (!stop.stop_requested()) {
      const std::int64_t now = shared_->options.now_ms();
      std::optional<ClaimedJob> claimed = shared_->state.claim(worker_, now);
      shared_->deliver();
      if (claimed || std::chrono::steady_clock::now() >= deadline) {
        return claimed;
      }
      auto until = deadline;
      if (const auto lease_end = shared_->state.first_lease_end()) {
        until = std::min(until, std::chrono::steady_clock::now() + std::chrono::milliseconds(*lease_end - now));
      }
      // claim() left nothing queued.
      shared_->changed.wait_until(lock, stop, until, [&] { return shared_->state.stats(now).queued != 0; });
    }
    return std::optional<ClaimedJob>();
  }
  Result<LeaseAnswer> put(const ClaimedJob& job, std::uint64_t seq, std::string_view bytes) override {
    return shared_->locked([&](auto& state, auto) { return state.put(job, seq, bytes); });
  }
  Result<LeaseAnswer> beat(const ClaimedJob& job) override {
    return shared_->locked([&](auto& state, auto now) { return state.beat(job, now); });
  }
  Result<LeaseAnswer> finish(const ClaimedJob& job,
                             JobState end,
                             std::uint64_t seq,
                             std::string_view bytes,
                             std::int32_t code,
                             std::string_view message) override {
    return shared_->locked([&](auto& state, auto now) { return state.finish(job, end, seq, bytes, code, message, now); });
  }
  Result<LeaseAnswer> release(const ClaimedJob& job) override {
    return shared_->locked([&](auto& state, auto now) { return state.release(job, now); });
  }
  Status announce(const std::string& model, std::string_view announcement, const std::string& current_job) override {
    return shared_->locked([&](auto& state, auto now) {
      state.announce(worker_, model, announcement, current_job, now);
      return Status();
    });
  }

 private:
  SharedPtr shared_;
  std::string worker_;
};

class MemoryEventSource final : public JobEventSource {
 public:
  explicit MemoryEventSource(SharedPtr shared) : shared_(std::move(shared)), inbox_(std::make_shared<Inbox>()) {
    const std::lock_guard lock(shared_->mutex);
    shared_->inboxes.push_back(inbox_);
  }
  ~MemoryEventSource() override {
    const std::lock_guard lock(shared_->mutex);
    std::erase(shared_->inboxes, inbox_);
  }
  MemoryEventSource(const MemoryEventSource&) = delete;
  MemoryEventSource& operator=(const MemoryEventSource&) = delete;

  Result<EventBatch> read(const std::string& job_id, const Cursor& after, std::size_t max_entries) override {
    return shared_->locked([&](auto& state, auto now) { return state.read(job_id, after, max_entries, now); });
  }
  Result<std::vector<std::string>> wait_for_wakeups(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait_for(lock, timeout, [&] { return !inbox_->woken.empty() || inbox_->interrupted; });
    inbox_->interrupted = false;
    return std::exchange(inbox_->woken, {});
  }
  void interrupt() override {
    const std::lock_guard lock(shared_->mutex);
    inbox_->interrupted = true;
    shared_->changed.notify_all();
  }

 private:
  SharedPtr shared_;
  std::shared_ptr<Inbox> inbox_;
};

}  // namespace

MemoryQueue::MemoryQueue() : MemoryQueue(Options()) {}
MemoryQueue::MemoryQueue(Options options) : shared_(std::make_shared<Shared>(std::move(options))) {}
MemoryQueue::~MemoryQueue() = default;

std::unique_ptr<JobSubmitter> MemoryQueue::submitter() {
  return std::make_unique<MemorySubmitter>(shared_);
}
std::unique_ptr<JobConsumer> MemoryQueue::consumer(const std::string& worker) {
  return std::make_unique<MemoryConsumer>(shared_, worker);
}
std::unique_ptr<JobEventSource> MemoryQueue::events() {
  return std::make_unique<MemoryEventSource>(shared_);
}

}  // namespace merope::queue
