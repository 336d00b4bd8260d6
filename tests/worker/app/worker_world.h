// A worker's surroundings in one process: the memory queue on a clock of its own, a worker's clock, a scripted engine, and a
// consumer whose calls can be made to fail.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "core/base/clock.h"
#include "core/base/metrics.h"
#include "core/queue/memory_queue.h"
#include "tests/support/fake_engine.h"
#include "worker/app/job_runner.h"

namespace merope::worker {

// Passes calls on; before each it asks a hook, whose error is the answer instead. With `reply_lost` the call happens and the
// error is the answer all the same.
class HookedConsumer final : public queue::JobConsumer {
 public:
  explicit HookedConsumer(std::unique_ptr<queue::JobConsumer> inner) : inner_(std::move(inner)) {}

  struct Fault {
    Status status = {};
    bool reply_lost = false;
  };
  using Hook = std::function<Fault()>;
  Hook on_claim, on_put, on_beat, on_finish, on_release, on_announce;
  std::atomic<int> n_puts = 0, n_beats = 0, n_announces = 0;
  std::string announced_job;  // of the last announcement; tests that tick by hand only

  Result<std::optional<queue::ClaimedJob>> claim(std::chrono::milliseconds timeout, std::stop_token stop) override {
    return with<std::optional<queue::ClaimedJob>>(on_claim, [&] { return inner_->claim(timeout, stop); });
  }
  Result<queue::LeaseAnswer> put(const queue::ClaimedJob& job, std::uint64_t seq, std::string_view bytes) override {
    ++n_puts;
    return with<queue::LeaseAnswer>(on_put, [&] { return inner_->put(job, seq, bytes); });
  }
  Result<queue::LeaseAnswer> beat(const queue::ClaimedJob& job) override {
    ++n_beats;
    return with<queue::LeaseAnswer>(on_beat, [&] { return inner_->beat(job); });
  }
  Result<queue::LeaseAnswer> finish(const queue::ClaimedJob& job,
                                    queue::JobState state,
                                    std::uint64_t seq,
                                    std::string_view bytes,
                                    std::int32_t code,
                                    std::string_view message) override {
    return with<queue::LeaseAnswer>(on_finish, [&] { return inner_->finish(job, state, seq, bytes, code, message); });
  }
  Result<queue::LeaseAnswer> release(const queue::ClaimedJob& job) override {
    return with<queue::LeaseAnswer>(on_release, [&] { return inner_->release(job); });
  }
  Status announce(const std::string& model, std::string_view announcement, const std::string& current_job) override {
    ++n_announces;
    announced_job = current_job;
    if (on_announce) {
      MEROPE_RETURN_IF_ERROR(on_announce().status);
    }
    return inner_->announce(model, announcement, current_job);
  }

 private:
  template <typename T, typename Call>
  Result<T> with(const Hook& hook, Call call) {
    const Fault fault = hook ? hook() : Fault();
    if (!fault.status && !fault.reply_lost) {
      return fault.status.error();
    }
    Result<T> answer = call();
    if (!fault.status) {
      return fault.status.error();
    }
    return answer;
  }

  std::unique_ptr<queue::JobConsumer> inner_;
};

inline constexpr std::chrono::milliseconds kLease{30'000};

struct WorkerWorld {
  explicit WorkerWorld(queue::QueueLimits limits = {})
      : queue(options(limits)), engine(std::make_unique<test::FakeEngine>()) {}

  queue::MemoryQueue::Options options(queue::QueueLimits limits) {
    limits.lease = kLease;
    return {limits,
            [this] {
              return std::chrono::duration_cast<std::chrono::milliseconds>(queue_clock.now().time_since_epoch()).count();
            },
            {}};
  }

  // Time passes for the queue and the worker alike.
  void pass(Clock::Duration time) {
    queue_clock.advance(time);
    clock.advance(time);
  }

  std::string submit(const queue::NewJob& job) { return submitter->submit(job)->job_id; }
  std::string submit(const GenerationSpec& spec) { return submit(test::fake_job(spec, "r" + std::to_string(++n_jobs))); }

  // Claims the next job and runs one attempt.
  JobOutcome run_next() {
    auto claimed = consumer.claim(std::chrono::milliseconds(0), {});
    if (!claimed || !*claimed) {
      ADD_FAILURE() << "nothing to claim";
      return JobOutcome::kLost;
    }
    JobRunner::Options runner_options;
    runner_options.worker = "w1";
    runner_options.retry = {std::chrono::milliseconds(1), std::chrono::milliseconds(1)};
    JobRunner runner(*engine, consumer, keeper, *drain, clock, metrics, runner_options);
    return runner.run(std::move(**claimed));
  }

  test::ReadStream stream(const std::string& job_id) { return test::read_stream(*events, job_id); }
  queue::JobRecord record(const std::string& job_id) { return *submitter->get(job_id); }

  ManualClock queue_clock;
  ManualClock clock;
  queue::MemoryQueue queue;
  std::unique_ptr<queue::JobSubmitter> submitter = queue.submitter();
  std::unique_ptr<queue::JobEventSource> events = queue.events();
  HookedConsumer consumer{queue.consumer("w1")};
  MetricsRegistry registry;
  WorkerMetrics metrics{registry, "cpu"};
  int n_stalls = 0;
  LeaseKeeper keeper{consumer, clock, metrics, keeper_options()};
  std::optional<Drain> drain{std::in_place};
  std::unique_ptr<test::FakeEngine> engine;
  int n_jobs = 0;

 private:
  LeaseKeeper::Options keeper_options() {
    LeaseKeeper::Options options;
    options.model = "fake";
    options.stall_limit = std::chrono::seconds(120);
    options.on_stall = [this] { ++n_stalls; };
    return options;
  }
};

inline HookedConsumer::Fault away(bool reply_lost = false) {
  return {unavailable("redis is away"), reply_lost};
}

}  // namespace merope::worker
