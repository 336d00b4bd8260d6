// Redis is killed and started again while clients submit, workers work and readers read.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "core/queue/queue_factory.h"
#include "tests/queue/world.h"
#include "tests/support/redis_server.h"

namespace merope::queue {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kSubmitters = 2;
constexpr int kJobsEach = 60;
constexpr int kWorkers = 3;
constexpr std::uint64_t kEntries = 4;
constexpr int kKills = 4;
constexpr std::chrono::seconds kDeadline{60};

class RestartUnderLoad : public testing::Test {
 protected:
  RestartUnderLoad() {
    RedisQueueOptions options;
    options.limits.lease = milliseconds(1'500);
    options.limits.max_attempts = 20;
    options.command_timeout = milliseconds(1'000);
    queue = open_queue(redis.url(), options).value();
  }

  bool over() const { return steady_clock::now() > deadline || all_ended; }

  // Calls until the answer is not that Redis is away. A client waits between two tries; so does this one, on `changed`.
  template <typename Call>
  auto persistently(Call call) {
    auto answer = call();
    while (!answer && answer.error().code == ErrorCode::kUnavailable && !over()) {
      {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, milliseconds(10));
      }
      answer = call();
    }
    return answer;
  }

  void submit_jobs(int submitter) {
    const auto server = queue->submitter();
    for (int i = 0; i < kJobsEach; ++i) {
      const std::string request = "s" + std::to_string(submitter) + "-" + std::to_string(i);
      const Result<SubmitOutcome> outcome = persistently([&] { return server->submit(new_job(request)); });
      ASSERT_TRUE(outcome) << outcome.error().message;
      const std::lock_guard lock(mutex);
      accepted[outcome->job_id] = request;
    }
  }

  void work(int number) {
    const auto worker = queue->consumer("w" + std::to_string(number));
    while (!over()) {
      const auto claimed = worker->claim(milliseconds(200), {});
      if (!claimed || !*claimed) {
        continue;
      }
      const ClaimedJob& job = **claimed;
      bool mine = true;
      for (std::uint64_t seq = 1; mine && seq <= kEntries; ++seq) {
        const std::string bytes = std::to_string(job.epoch) + ":" + std::to_string(seq);
        const bool last = seq == kEntries;
        const Result<LeaseAnswer> answer = persistently([&] {
          return last ? worker->finish(job, JobState::kSucceeded, seq, bytes, 0, "") : worker->put(job, seq, bytes);
        });
        mine = answer && *answer == LeaseAnswer::kOk;
        if (mine && last) {
          const std::lock_guard lock(mutex);
          finished.emplace_back(job.job_id);
        }
      }
    }
  }

  // A server's fan-out: every job's stream from a cursor, as far as the wake-ups lead.
  void read_streams() {
    const auto events = queue->events();
    std::map<std::string, Cursor> cursors;
    while (!over()) {
      const Result<std::vector<std::string>> woken = events->wait_for_wakeups(milliseconds(50));
      std::vector<std::string> ids;
      if (woken) {
        ids = *woken;
      }
      for (const std::string& id : ids) {
        Cursor& cursor = cursors[id];
        const Result<EventBatch> batch = events->read(id, cursor, 100);
        if (!batch) {
          continue;
        }
        for (const StreamEntry& entry : batch->entries) {
          const bool follows = entry.cursor.epoch == cursor.epoch
                                   ? entry.cursor.seq == cursor.seq + 1
                                   : entry.cursor.epoch > cursor.epoch && entry.cursor.seq == 1;
          if (!follows) {
            ADD_FAILURE() << id << ": " << entry.cursor.epoch << "-" << entry.cursor.seq << " after " << cursor.epoch << "-"
                          << cursor.seq;
          }
          cursor = entry.cursor;
          ++delivered;
        }
      }
    }
  }

  void reconcile() {
    const auto server = queue->submitter();
    while (!over()) {
      static_cast<void>(server->reconcile());
      std::unique_lock lock(mutex);
      changed.wait_for(lock, milliseconds(100));
    }
  }

  std::size_t n_finished() {
    const std::lock_guard lock(mutex);
    return finished.size();
  }

  test::RedisServer redis;
  std::unique_ptr<RedisQueue> queue;
  const steady_clock::time_point deadline = steady_clock::now() + kDeadline;
  std::atomic<bool> all_ended{false};
  std::atomic<int> delivered{0};
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> accepted;  // job id -> request id
  std::vector<std::string> finished;
};

TEST_F(RestartUnderLoad, EveryAcceptedJobEndsExactlyOnceAndNoStreamHasAHole) {
  constexpr std::size_t kJobs = kSubmitters * kJobsEach;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kSubmitters; ++i) {
    threads.emplace_back([this, i] { submit_jobs(i); });
  }
  for (int i = 0; i < kWorkers; ++i) {
    threads.emplace_back([this, i] { work(i); });
  }
  threads.emplace_back([this] { read_streams(); });
  threads.emplace_back([this] { reconcile(); });

  for (std::size_t kill = 1; kill <= kKills; ++kill) {
    while (!over() && n_finished() < kill * kJobs / (kKills + 1)) {
      std::unique_lock lock(mutex);
      changed.wait_for(lock, milliseconds(2));
    }
    redis.kill();
    redis.start();
  }
  const auto server = queue->submitter();
  while (!over()) {
    const Result<QueueStats> stats = server->stats();
    const std::lock_guard lock(mutex);
    all_ended = stats && stats->queued + stats->running == 0 && accepted.size() == kJobs;
  }
  threads.clear();
  ASSERT_TRUE(all_ended) << accepted.size() << " accepted, " << finished.size() << " finished";

  std::set<std::string> requests;
  for (const auto& [id, request] : accepted) {
    EXPECT_TRUE(requests.insert(request).second) << request << " became two jobs";
    const EventBatch batch = queue->events()->read(id, {}, 100).value();
    EXPECT_EQ(batch.record.state, JobState::kSucceeded) << id << ": " << batch.record.message;
    ASSERT_EQ(batch.entries.size(), kEntries) << id;
    for (std::uint64_t seq = 1; seq <= kEntries; ++seq) {
      EXPECT_EQ(batch.entries[seq - 1].cursor, (Cursor{batch.record.epoch, seq})) << id;
      EXPECT_EQ(batch.entries[seq - 1].bytes, std::to_string(batch.record.epoch) + ":" + std::to_string(seq)) << id;
    }
  }
  EXPECT_EQ(requests.size(), kJobs);
  EXPECT_EQ(server->list(std::nullopt, 10'000)->size(), kJobs) << "a job that nobody was told of";
  const std::set<std::string> once(finished.begin(), finished.end());
  EXPECT_EQ(once.size(), finished.size()) << "two workers were told that they had finished the same job";
  EXPECT_GT(delivered, 0);
}

}  // namespace
}  // namespace merope::queue
