// Real worker processes on a real Redis: killed, frozen, hung and stopped in the middle of a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/base/exit_codes.h"
#include "core/base/sha256.h"
#include "core/queue/queue_factory.h"
#include "tests/support/fake_engine.h"
#include "tests/support/redis_server.h"
#include "tests/worker/app/child_process.h"

namespace merope {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> with_defaults(const test::RedisServer& redis,
                                       const std::string& name,
                                       const std::string& lease_seconds,
                                       std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"--redis-url", redis.url(), "--name", name, "--lease-seconds", lease_seconds});
  return flags;
}

class WorkerProcess : public test::ChildProcess {
 public:
  WorkerProcess(const test::RedisServer& redis,
                const std::string& name,
                std::vector<std::string> flags = {},
                const std::string& lease_seconds = "1")
      : ChildProcess(test::binary_dir() + "/tests/merope_fake_worker",
                     with_defaults(redis, name, lease_seconds, std::move(flags))) {}
};

class WorkerProcesses : public ::testing::Test {
 protected:
  WorkerProcesses() {
    queue::RedisQueueOptions options;
    options.limits.lease = 1s;
    queue_ = *queue::open_queue(redis_.url(), options);
    submitter_ = queue_->submitter();
    events_ = queue_->events();
  }

  std::string submit(int steps, const std::string& request_id = "r") {
    GenerationSpec spec = test::fake_spec();
    spec.steps = steps;
    return submitter_->submit(test::fake_job(spec, request_id))->job_id;
  }

  // Looks at the job whenever it changed, for at most 30 s.
  template <typename Condition>
  bool reaches(const std::string& id, Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (std::chrono::steady_clock::now() < deadline) {
      if (const auto record = submitter_->get(id); record && condition(*record)) {
        return true;
      }
      (void)submitter_->reconcile();  // what a server does every few seconds
      (void)events_->wait_for_wakeups(200ms);
    }
    return false;
  }
  bool runs_on(const std::string& id, const std::string& worker, std::uint64_t after_entries) {
    return reaches(id, [&](const queue::JobRecord& record) {
      return record.state == queue::JobState::kRunning && record.worker == worker && record.last_seq >= after_entries;
    });
  }
  bool succeeds(const std::string& id) {
    return reaches(id, [](const queue::JobRecord& record) { return record.state == queue::JobState::kSucceeded; });
  }

  void expect_whole(const std::string& id, std::uint32_t attempts, const std::string& worker) {
    const test::ReadStream stream = test::read_stream(*events_, id);
    EXPECT_EQ(stream.error, "");
    EXPECT_EQ(stream.record.attempts, attempts);
    EXPECT_EQ(stream.record.worker, worker);
    ASSERT_NE(stream.finished(), nullptr);
    EXPECT_EQ(stream.finished()->frames(), 9U);
    EXPECT_EQ(stream.finished()->sha256(), sha256_hex(stream.file));
    int ends = 0;
    for (const v1::StreamEvent& event : stream.events) {
      ends += event.has_finished() || event.has_failed() ? 1 : 0;
    }
    EXPECT_EQ(ends, 1);
  }

  test::RedisServer redis_;
  std::unique_ptr<queue::RedisQueue> queue_;
  std::unique_ptr<queue::JobSubmitter> submitter_;
  std::unique_ptr<queue::JobEventSource> events_;
};

TEST_F(WorkerProcesses, AKilledWorkersJobIsTakenOver) {
  const std::string id = submit(10);
  WorkerProcess first(redis_, "first", {"--step-seconds", "0.5"});
  ASSERT_TRUE(runs_on(id, "first", 3));
  WorkerProcess second(redis_, "second");
  first.send(SIGKILL);
  EXPECT_EQ(first.wait(), -SIGKILL);
  EXPECT_TRUE(succeeds(id));
  expect_whole(id, 2, "second");
}

TEST_F(WorkerProcesses, AFrozenWorkerIsFencedAndGoesQuiet) {
  const std::string id = submit(10);
  WorkerProcess first(redis_, "first", {"--step-seconds", "0.2"});
  ASSERT_TRUE(runs_on(id, "first", 3));
  first.send(SIGSTOP);
  WorkerProcess second(redis_, "second");
  EXPECT_TRUE(succeeds(id));
  second.send(SIGTERM);
  EXPECT_EQ(second.wait(), kExitOk);
  const std::string before = test::read_stream(*events_, id).file;
  first.send(SIGCONT);
  // It finds out, and works on: the next job is its.
  const std::string next = submit(2, "r2");
  EXPECT_TRUE(succeeds(next));
  expect_whole(next, 1, "first");
  expect_whole(id, 2, "second");
  EXPECT_TRUE(test::read_stream(*events_, id).file == before);
}

TEST_F(WorkerProcesses, AHungEngineLosesItsJobAndEndsItsProcess) {
  const std::string id = submit(4);
  WorkerProcess first(redis_, "first", {"--hang-at-step", "3", "--stall-limit", "1"});
  ASSERT_TRUE(runs_on(id, "first", 3));
  EXPECT_EQ(first.wait(), kExitSoftware);
  WorkerProcess second(redis_, "second");
  EXPECT_TRUE(succeeds(id));
  expect_whole(id, 2, "second");
}

TEST_F(WorkerProcesses, AJobThatKillsWorkersEndsAsPoison) {
  const std::string id = submit(4);
  for (int attempt = 1; attempt <= 3; ++attempt) {
    WorkerProcess worker(redis_, "w" + std::to_string(attempt), {"--crash-at-step", "2"});
    EXPECT_EQ(worker.wait(), -SIGABRT);
  }
  EXPECT_TRUE(reaches(id, [](const queue::JobRecord& record) { return record.state == queue::JobState::kFailed; }));
  EXPECT_EQ(submitter_->get(id)->attempts, 3U);
}

TEST_F(WorkerProcesses, SigtermGivesALongJobBackAndExitsWithZero) {
  const std::string id = submit(1000);
  WorkerProcess first(redis_, "first", {"--step-seconds", "0.1", "--drain-seconds", "1"});
  ASSERT_TRUE(runs_on(id, "first", 4));
  first.send(SIGTERM);
  EXPECT_EQ(first.wait(), kExitOk);
  EXPECT_EQ(submitter_->get(id)->state, queue::JobState::kQueued);
  EXPECT_EQ(submitter_->get(id)->attempts, 0U);
}

TEST_F(WorkerProcesses, ARedisThatRestartsMidJobCostsNothing) {
  const std::string id = submit(8);
  WorkerProcess worker(redis_, "first", {"--step-seconds", "0.1"}, "20");
  ASSERT_TRUE(runs_on(id, "first", 3));
  redis_.kill();
  redis_.start();
  EXPECT_TRUE(succeeds(id));
  expect_whole(id, 1, "first");
}

TEST_F(WorkerProcesses, ExitCodesSayWhatIsWrong) {
  redis_.kill();
  WorkerProcess worker(redis_, "first");
  EXPECT_EQ(worker.wait(), kExitUnavailable);
}

}  // namespace
}  // namespace merope
