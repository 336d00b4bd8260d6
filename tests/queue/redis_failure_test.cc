// What goes wrong with a Redis, made to go wrong on one of our own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "core/queue/queue_factory.h"
#include "tests/queue/world.h"
#include "tests/support/redis_server.h"

namespace merope::queue {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

constexpr milliseconds kShort{200};

class RedisFailure : public testing::Test {
 protected:
  explicit RedisFailure(test::RedisServer::Options options = {}) : redis(std::move(options)) { open(QueueLimits()); }

  void open(const QueueLimits& limits) {
    RedisQueueOptions options;
    options.limits = limits;
    options.command_timeout = kShort;
    queue = open_queue(redis.url(), options).value();
    server = queue->submitter();
    worker = queue->consumer("w1");
    events = queue->events();
  }
  std::optional<ClaimedJob> claim() { return worker->claim(milliseconds(0), {}).value(); }

  test::RedisServer redis;
  std::unique_ptr<RedisQueue> queue;
  std::unique_ptr<JobSubmitter> server;
  std::unique_ptr<JobConsumer> worker;
  std::unique_ptr<JobEventSource> events;
};

TEST(RedisAway, IsOneSentenceWithAddressAndReason) {
  const auto nowhere = open_queue("unix:///nowhere/redis.sock");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(nowhere.error().message, "Redis at unix:///nowhere/redis.sock can not be reached: No such file or directory");
  EXPECT_EQ(open_queue("nonsense").error().code, ErrorCode::kInvalidArgument);
}

TEST(RedisAway, AnswersByTcpAndWithThePasswordOnly) {
  test::RedisServer::Options options;
  options.tcp = true;
  options.arguments = {"--requirepass", "open sesame"};
  const test::RedisServer redis(options);
  std::string url = redis.tcp_url();
  const auto without = open_queue(url);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(without.error().message, HasSubstr("NOAUTH"));
  EXPECT_THAT(open_queue(std::string(url).insert(8, ":wrong@")).error().message, HasSubstr("WRONGPASS"));
  const auto with = open_queue(url.insert(8, ":open sesame@"));
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_TRUE((*with)->submitter()->submit(new_job("r1")));
}

TEST_F(RedisFailure, CallsToADeadRedisFailAtOnceAndWorkAgainAfterItsReturn) {
  const std::string id = server->submit(new_job("r1"))->job_id;
  redis.kill();
  const auto begin = steady_clock::now();
  EXPECT_EQ(server->submit(new_job("r2")).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(server->get(id).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(events->read(id, {}, 1).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(worker->claim(milliseconds(0), {}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(queue->ping().error().code, ErrorCode::kUnavailable);
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(2));
  redis.start();
  EXPECT_EQ(server->get(id)->state, JobState::kQueued);
  EXPECT_EQ(claim()->job_id, id);
}

TEST_F(RedisFailure, FrozenRedisEndsEveryCallAtItsTimeout) {
  const std::string id = server->submit(new_job("r1"))->job_id;
  const auto job = claim();
  ASSERT_TRUE(events->wait_for_wakeups(milliseconds(1)));
  redis.freeze();
  const auto begin = steady_clock::now();
  EXPECT_EQ(queue->ping().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(server->submit(new_job("r2")).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(worker->put(*job, 1, "a").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(worker->beat(*job).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(worker->claim(milliseconds(50), {}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(events->read(id, {}, 1).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(events->wait_for_wakeups(milliseconds(50))->empty());
  EXPECT_LT(steady_clock::now() - begin, 6 * kShort + std::chrono::seconds(2));
  EXPECT_THAT(queue->ping().error().message, HasSubstr("no answer in time"));
  redis.thaw();
  // What was sent is carried out now, or was not; repeating it is right either way.
  EXPECT_EQ(worker->put(*job, 1, "a").value(), LeaseAnswer::kOk);
  EXPECT_EQ(worker->finish(*job, JobState::kSucceeded, 2, "end", 0, "").value(), LeaseAnswer::kOk);
  const std::string second = server->submit(new_job("r2"))->job_id;
  EXPECT_EQ(server->list(std::nullopt, 10)->size(), 2U);
  // The claim that nobody heard the answer of is answered again: no job waits for a lease to end.
  const auto again = worker->claim(std::chrono::seconds(5), {}).value();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->job_id, second);
  EXPECT_EQ(again->epoch, 1U);
}

TEST_F(RedisFailure, FrozenWhileAClaimWaits) {
  std::jthread waiting([&] { EXPECT_EQ(worker->claim(milliseconds(300), {}).error().code, ErrorCode::kUnavailable); });
  while (redis.command("CLIENT LIST").find("cmd=xread") == std::string::npos) {
  }
  redis.freeze();
  waiting.join();
  redis.thaw();
}

TEST_F(RedisFailure, ForgottenScriptsAreSentAgain) {
  ASSERT_TRUE(server->submit(new_job("r1")));
  redis.command("SCRIPT FLUSH");
  EXPECT_TRUE(server->submit(new_job("r2")));
  const auto job = claim();
  redis.command("SCRIPT FLUSH");
  EXPECT_EQ(worker->put(*job, 1, "a").value(), LeaseAnswer::kOk);
  EXPECT_EQ(server->stats()->queued, 1U);
}

TEST_F(RedisFailure, ClosedConnectionsAreReplacedUnseen) {
  ASSERT_TRUE(server->submit(new_job("r1")));
  const auto job = claim();
  for (std::uint64_t seq = 1; seq <= 20; ++seq) {
    redis.command("CLIENT KILL TYPE normal SKIPME no");
    ASSERT_EQ(worker->put(*job, seq, "x").value(), LeaseAnswer::kOk);
  }
  EXPECT_EQ(events->read(job->job_id, {}, 100)->entries.size(), 20U);
}

TEST_F(RedisFailure, EmptiedRedisForgetsJobsAndIsUsableAtOnce) {
  const std::string id = server->submit(new_job("r1"))->job_id;
  const auto job = claim();
  std::optional<ClaimedJob> got;
  const auto patient = queue->consumer("w2");
  std::jthread waiting([&] { got = patient->claim(std::chrono::seconds(20), {}).value(); });
  while (redis.command("CLIENT LIST").find("cmd=xread") == std::string::npos) {
  }
  redis.command("FLUSHALL");
  EXPECT_EQ(server->get(id).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(worker->put(*job, 1, "a").value(), LeaseAnswer::kFenced);
  EXPECT_EQ(worker->finish(*job, JobState::kSucceeded, 1, "a", 0, "").value(), LeaseAnswer::kFenced);
  EXPECT_TRUE(server->reconcile());
  const SubmitOutcome again = server->submit(new_job("r1")).value();
  EXPECT_FALSE(again.duplicate);
  waiting.join();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->job_id, again.job_id);
}

TEST_F(RedisFailure, FullMemoryRefusesNewJobsAndLetsRunningOnesEnd) {
  ASSERT_TRUE(server->submit(new_job("running")));
  ASSERT_TRUE(server->submit(new_job("waiting")));
  const auto job = claim();
  const auto refused = [&](const std::string& why) {
    const Result<SubmitOutcome> outcome = server->submit(new_job("one more"));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::kResourceExhausted);
    EXPECT_THAT(outcome.error().message, HasSubstr(why));
  };
  redis.command("CONFIG SET maxmemory 1mb");
  refused("OOM");
  EXPECT_EQ(worker->put(*job, 1, std::string(kMaxEntryBytes, 'x')).value(), LeaseAnswer::kOk);
  EXPECT_EQ(worker->beat(*job).value(), LeaseAnswer::kOk);
  EXPECT_TRUE(worker->announce("model", "about", job->job_id));
  EXPECT_EQ(worker->finish(*job, JobState::kSucceeded, 2, "end", 0, "").value(), LeaseAnswer::kOk);
  EXPECT_EQ(events->read(job->job_id, {}, 10)->entries.size(), 2U);
  EXPECT_EQ(server->stats()->queued, 1U);
  EXPECT_TRUE(server->reconcile());
  const auto next = claim();
  ASSERT_TRUE(next);
  EXPECT_EQ(worker->release(*next).value(), LeaseAnswer::kOk);
  EXPECT_EQ(server->cancel(next->job_id)->state, JobState::kCancelled);
  // Nearly full: what is left belongs to the jobs that were accepted.
  const std::string memory = redis.command("INFO memory");
  const std::size_t used = std::stoul(memory.substr(memory.find("used_memory:") + 12));
  redis.command("CONFIG SET maxmemory " + std::to_string(used * 11 / 10));
  refused("nearly full");
  redis.command("CONFIG SET maxmemory 0");
  EXPECT_TRUE(server->submit(new_job("one more")));
}

TEST_F(RedisFailure, ReplicaAndRefusedWritesAreUnavailable) {
  ASSERT_TRUE(server->submit(new_job("r1")));
  redis.command("REPLICAOF 127.0.0.1 1");
  EXPECT_EQ(server->submit(new_job("r2")).error().code, ErrorCode::kUnavailable);
  redis.command("REPLICAOF NO ONE");
  EXPECT_TRUE(server->submit(new_job("r2")));
  redis.command("CONFIG SET min-replicas-to-write 1");
  EXPECT_EQ(server->submit(new_job("r3")).error().code, ErrorCode::kUnavailable);
  redis.command("CONFIG SET min-replicas-to-write 0");
  EXPECT_TRUE(server->submit(new_job("r3")));
}

TEST_F(RedisFailure, ReconcileRepairsStreamsGroupsAndLeftovers) {
  const std::string first = server->submit(new_job("r1"))->job_id;
  const std::string second = server->submit(new_job("r2"))->job_id;
  const auto job = claim();
  ASSERT_EQ(job->job_id, first);
  // The waiting job's entry vanishes, an entry of no job appears, and the group is gone.
  redis.command("DEL {merope}:s:normal");
  redis.command("XADD {merope}:s:normal * id job-of-nobody");
  EXPECT_EQ(server->reconcile().value(), 1U);
  EXPECT_EQ(server->reconcile().value(), 0U);
  EXPECT_EQ(claim()->job_id, second);
  EXPECT_EQ(redis.command("XLEN {merope}:s:normal"), "1");
  redis.command("XGROUP DESTROY {merope}:s:normal workers");
  EXPECT_FALSE(claim());  // delivered again by the new group, but running
  EXPECT_EQ(worker->finish(*job, JobState::kSucceeded, 1, "end", 0, "").value(), LeaseAnswer::kOk);
  EXPECT_EQ(redis.command("XLEN {merope}:s:normal"), "1");
  // Consumers of workers that are gone and hold nothing go too.
  EXPECT_FALSE(queue->consumer("gone")->claim(milliseconds(0), {}).value());
  ASSERT_TRUE(server->reconcile());
  EXPECT_THAT(redis.command("XINFO CONSUMERS {merope}:s:normal workers"), testing::Not(HasSubstr("gone")));
}

TEST_F(RedisFailure, PoisonIsKeptInTheDeadLetters) {
  QueueLimits limits;
  limits.lease = milliseconds(1);
  limits.max_attempts = 2;
  open(limits);
  const std::string id = server->submit(new_job("r1"))->job_id;
  // Each claim waits for the lease of the one before to end.
  ASSERT_TRUE(worker->claim(std::chrono::seconds(5), {}).value());
  ASSERT_TRUE(worker->claim(std::chrono::seconds(5), {}).value());
  const auto deadline = steady_clock::now() + std::chrono::seconds(5);
  while (server->reconcile().value() == 0 && steady_clock::now() < deadline) {
  }
  EXPECT_EQ(server->get(id)->state, JobState::kFailed);
  const std::string dead = redis.command("XRANGE {merope}:dead - +");
  EXPECT_THAT(dead, HasSubstr(id));
  EXPECT_THAT(dead, HasSubstr("2 workers were lost"));
}

// The programs have their own limits: a server its operator's, a worker none but the lease.
TEST_F(RedisFailure, TheLimitsOfTheServerHoldForItsJobsWhoeverEndsThem) {
  QueueLimits limits;
  limits.max_attempts = 1;
  limits.max_output_bytes = 10;
  limits.keep_output = milliseconds(20'000);
  limits.keep_job = milliseconds(50'000);
  open(limits);
  RedisQueueOptions others;
  others.limits.lease = milliseconds(1);
  const auto other = open_queue(redis.url(), others).value()->consumer("other");

  const std::string ended = server->submit(new_job("r1"))->job_id;
  const ClaimedJob job = other->claim(std::chrono::seconds(5), {}).value().value();
  const Result<LeaseAnswer> put = other->put(job, 1, "eleven byte");
  ASSERT_FALSE(put);
  EXPECT_THAT(put.error().message, HasSubstr("10 "));
  ASSERT_EQ(other->put(job, 1, "ten bytes.").value(), LeaseAnswer::kOk);
  ASSERT_EQ(other->finish(job, JobState::kSucceeded, 2, "end", 0, "").value(), LeaseAnswer::kOk);
  const auto milliseconds_left = [&](const std::string& key) {
    return std::stol(redis.command("PTTL {merope}:" + key));
  };
  EXPECT_LE(milliseconds_left("out:" + ended), 20'000);
  EXPECT_LE(milliseconds_left("job:" + ended), 50'000);
  EXPECT_GT(milliseconds_left("job:" + ended), 20'000);

  const std::string lost = server->submit(new_job("r2"))->job_id;
  ASSERT_TRUE(other->claim(std::chrono::seconds(5), {}).value());
  // The next claim finds that the lease is over.
  EXPECT_FALSE(other->claim(milliseconds(50), {}).value());
  EXPECT_EQ(server->get(lost)->state, JobState::kFailed);
}

// Redis cuts a torn file at the last whole command, which may lie inside a transaction, and then leaves that transaction out
// of its memory but not of the file. So each trial begins with the whole file.
TEST_F(RedisFailure, TornFileLoadsWithWholeJobsOnly) {
  constexpr std::size_t kJobs = 30;
  constexpr int kTrials = 8;
  for (std::size_t i = 0; i < kJobs; ++i) {
    ASSERT_TRUE(server->submit(new_job("r" + std::to_string(i))));
  }
  redis.kill();
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(redis.folder() / "appendonlydir")) {
    if (entry.path().filename().string().find(".incr.aof") != std::string::npos) {
      file = entry.path();
    }
  }
  ASSERT_FALSE(file.empty());
  const std::filesystem::path whole = redis.folder() / "whole.aof";
  std::filesystem::copy_file(file, whole);
  const std::uintmax_t size = std::filesystem::file_size(whole);
  std::mt19937_64 random(7);
  std::set<std::size_t> lefts;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::uintmax_t length = size - 1 - random() % (size / 2);
    SCOPED_TRACE("cut to " + std::to_string(length) + " of " + std::to_string(size) + " bytes");
    std::filesystem::copy_file(whole, file, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(file, length);
    redis.start();
    const std::vector<JobRecord> jobs = server->list(std::nullopt, 100).value();
    lefts.insert(jobs.size());
    EXPECT_EQ(server->stats()->queued, jobs.size());
    EXPECT_EQ(std::stoul(redis.command("XLEN {merope}:s:normal")), jobs.size());
    for (const JobRecord& job : jobs) {
      EXPECT_EQ(server->submit(new_job(job.request_id))->job_id, job.job_id);
    }
    EXPECT_EQ(server->reconcile().value(), 0U);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto job = claim();
      ASSERT_TRUE(job);
      EXPECT_EQ(job->job_id, jobs[jobs.size() - 1 - i].job_id);
      EXPECT_EQ(job->input, new_job("r" + std::to_string(i)).input);
    }
    EXPECT_FALSE(claim());
    redis.kill();
  }
  EXPECT_LT(*lefts.rbegin(), kJobs);
  EXPECT_GT(lefts.size(), 3U);
}

}  // namespace
}  // namespace merope::queue
