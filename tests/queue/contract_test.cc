#include "tests/queue/contract.h"

#include <gmock/gmock.h>

#include <thread>

namespace merope::queue {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

constexpr milliseconds kLong{10'000};  // of real time; no test waits that long unless it fails
constexpr LeaseAnswer kOk = LeaseAnswer::kOk;
constexpr LeaseAnswer kFenced = LeaseAnswer::kFenced;
constexpr LeaseAnswer kCancelled = LeaseAnswer::kCancelled;

std::vector<std::string> ids(const std::vector<JobRecord>& records) {
  std::vector<std::string> found;
  for (const JobRecord& record : records) {
    found.push_back(record.job_id);
  }
  return found;
}

TEST_P(QueueContract, AcceptedJobIsQueuedAndShowsWhatWasSubmitted) {
  const Result<SubmitOutcome> outcome = server->submit(new_job("r1", Priority::kHigh));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_FALSE(outcome->duplicate);
  const JobRecord job = record(outcome->job_id);
  EXPECT_EQ(job.job_id, outcome->job_id);
  EXPECT_EQ(job.request_id, "r1");
  EXPECT_EQ(job.state, JobState::kQueued);
  EXPECT_EQ(job.priority, Priority::kHigh);
  EXPECT_EQ(job.attempts, 0U);
  EXPECT_EQ(job.epoch, 0U);
  EXPECT_EQ(job.submitted_ms, world->now_ms());
  EXPECT_EQ(job.started_ms, 0);
  EXPECT_EQ(job.ended_ms, 0);
  EXPECT_FALSE(job.cancel_requested);
}

TEST_P(QueueContract, SameRequestGivesTheFirstJobAlsoAfterItEnded) {
  const std::string id = submit("r1");
  EXPECT_EQ(server->submit(new_job("r1"))->job_id, id);
  EXPECT_TRUE(server->submit(new_job("r1"))->duplicate);
  const auto job = claim();
  ASSERT_EQ(worker->finish(*job, JobState::kSucceeded, 1, "end", 0, "").value(), kOk);
  EXPECT_EQ(server->submit(new_job("r1"))->job_id, id);
  EXPECT_EQ(server->stats()->queued, 0U);
}

TEST_P(QueueContract, SameRequestIdWithOtherContentIsRefused) {
  const std::string id = submit("r1");
  NewJob changed = new_job("r1");
  changed.digest = "another";
  const Result<SubmitOutcome> outcome = server->submit(changed);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kAlreadyExists);
  EXPECT_THAT(outcome.error().message, testing::HasSubstr("r1"));
  EXPECT_THAT(ids(server->list(std::nullopt, 10).value()), ElementsAre(id));
}

TEST_P(QueueContract, SubmissionsOfOneRequestAtOnceGiveOneJob) {
  std::vector<std::string> accepted(16);
  std::atomic<int> fresh{0};
  {
    std::vector<std::jthread> threads;
    for (std::string& id : accepted) {
      threads.emplace_back([&] {
        const auto own = world->submitter();
        const Result<SubmitOutcome> outcome = own->submit(new_job("same"));
        id = outcome ? outcome->job_id : outcome.error().message;
        fresh += outcome && !outcome->duplicate ? 1 : 0;
      });
    }
  }
  EXPECT_THAT(accepted, testing::Each(accepted[0]));
  EXPECT_EQ(fresh, 1);
  EXPECT_EQ(server->stats()->queued, 1U);
}

TEST_P(QueueContract, FullQueueRefusesNewJobsButNotKnownOnes) {
  for (int i = 0; i < 5; ++i) {
    submit("r" + std::to_string(i));
  }
  const Result<SubmitOutcome> refused = server->submit(new_job("one more"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_TRUE(server->submit(new_job("r0"))->duplicate);
  ASSERT_TRUE(claim());
  EXPECT_TRUE(server->submit(new_job("one more")));  // a running job is not queued
}

TEST_P(QueueContract, ClaimGivesSpecInputAndLimits) {
  NewJob job = new_job("r1");
  job.max_run_time = milliseconds(77'000);
  const std::string id = submit(job);
  world->advance(milliseconds(1'500));
  const auto claimed = claim();
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->job_id, id);
  EXPECT_EQ(claimed->epoch, 1U);
  EXPECT_EQ(claimed->attempt, 1U);
  EXPECT_EQ(claimed->spec, job.spec);
  EXPECT_EQ(claimed->input, job.input);
  EXPECT_EQ(claimed->lease, milliseconds(30'000));
  EXPECT_EQ(claimed->max_run_time, milliseconds(77'000));
  EXPECT_EQ(claimed->waited, milliseconds(1'500));
  const JobRecord running = record(id);
  EXPECT_EQ(running.state, JobState::kRunning);
  EXPECT_EQ(running.worker, "w1");
  EXPECT_EQ(running.attempts, 1U);
  EXPECT_EQ(running.started_ms, world->now_ms());
  EXPECT_FALSE(claim(*other));
}

TEST_P(QueueContract, ServesByPriorityThenByAge) {
  const std::string low = submit("low", Priority::kLow);
  const std::string normal_1 = submit("n1");
  const std::string normal_2 = submit("n2");
  const std::string high = submit("high", Priority::kHigh);
  EXPECT_EQ(server->place(high).value(), 0U);
  EXPECT_EQ(server->place(normal_1).value(), 1U);
  EXPECT_EQ(server->place(normal_2).value(), 2U);
  EXPECT_EQ(server->place(low).value(), 3U);
  EXPECT_EQ(claimed_id(), high);
  EXPECT_EQ(server->place(low).value(), 2U);
  EXPECT_EQ(server->place(high).value(), 0U);
  EXPECT_EQ(claimed_id(), normal_1);
  EXPECT_EQ(claimed_id(), normal_2);
  EXPECT_EQ(claimed_id(), low);
  EXPECT_EQ(claimed_id(), "nothing");
}

TEST_P(QueueContract, EntriesAreReadInOrderFromAnyCursor) {
  const std::string id = submit("r1");
  const auto job = claim();
  for (std::uint64_t seq = 1; seq <= 12; ++seq) {
    ASSERT_EQ(worker->put(*job, seq, "e" + std::to_string(seq)).value(), kOk);
  }
  EXPECT_EQ(stream(id, {}, 3), "1-1:e1 1-2:e2 1-3:e3");
  EXPECT_EQ(stream(id, {1, 9}), "1-10:e10 1-11:e11 1-12:e12");
  EXPECT_EQ(stream(id, {1, 12}), "");
  EXPECT_EQ(stream(id, {2, 0}), "");
  EXPECT_EQ(stream(id, {UINT64_MAX, UINT64_MAX}), "");
  EXPECT_EQ(record(id).last_seq, 12U);
}

TEST_P(QueueContract, EntriesAreBinarySafe) {
  const std::string id = submit("r1");
  const auto job = claim();
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes.push_back(static_cast<char>(i));
  }
  ASSERT_EQ(worker->put(*job, 1, bytes).value(), kOk);
  ASSERT_EQ(worker->put(*job, 2, "").value(), kOk);
  const EventBatch batch = events->read(id, {}, 10).value();
  ASSERT_EQ(batch.entries.size(), 2U);
  EXPECT_EQ(batch.entries[0].bytes, bytes);
  EXPECT_EQ(batch.entries[1].bytes, "");
}

TEST_P(QueueContract, RepeatedPutWritesNothingAndAHoleIsRefused) {
  const std::string id = submit("r1");
  const auto job = claim();
  ASSERT_EQ(worker->put(*job, 1, "a").value(), kOk);
  EXPECT_EQ(worker->put(*job, 1, "a").value(), kOk);
  const Result<LeaseAnswer> hole = worker->put(*job, 3, "c");
  ASSERT_FALSE(hole);
  EXPECT_EQ(hole.error().code, ErrorCode::kFailedPrecondition);
  ASSERT_FALSE(worker->finish(*job, JobState::kSucceeded, 3, "c", 0, ""));
  EXPECT_EQ(stream(id), "1-1:a");
  EXPECT_EQ(record(id).state, JobState::kRunning);
}

TEST_P(QueueContract, EntriesAndStreamsAreBounded) {
  const std::string id = submit("r1");
  const auto job = claim();
  const Result<LeaseAnswer> too_long = worker->put(*job, 1, std::string(kMaxEntryBytes + 1, 'x'));
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, ErrorCode::kInvalidArgument);
  ASSERT_EQ(worker->put(*job, 1, std::string(600, 'x')).value(), kOk);
  const Result<LeaseAnswer> over = worker->put(*job, 2, std::string(401, 'y'));
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, ErrorCode::kOutOfRange);
  EXPECT_EQ(worker->put(*job, 2, std::string(400, 'z')).value(), kOk);
  EXPECT_EQ(worker->finish(*job, JobState::kFailed, 3, "the end fits", 13, "too long").value(), kOk);
  EXPECT_EQ(record(id).last_seq, 3U);
}

TEST_P(QueueContract, GreatestEntryComesBackWhole) {
  make(QueueLimits());
  const std::string id = submit("r1");
  const auto job = claim();
  const std::string bytes(kMaxEntryBytes, '\xAB');
  ASSERT_EQ(worker->put(*job, 1, bytes).value(), kOk);
  EXPECT_EQ(events->read(id, {}, 4)->entries.at(0).bytes, bytes);
}

TEST_P(QueueContract, FinishEndsTheJobOnceAndMayBeRepeated) {
  const std::string id = submit("r1");
  const auto job = claim();
  ASSERT_EQ(worker->put(*job, 1, "a").value(), kOk);
  world->advance(milliseconds(500));
  EXPECT_EQ(worker->finish(*job, JobState::kFailed, 2, "end", 8, "no memory").value(), kOk);
  const JobRecord ended = record(id);
  EXPECT_EQ(ended.state, JobState::kFailed);
  EXPECT_EQ(ended.code, 8);
  EXPECT_EQ(ended.message, "no memory");
  EXPECT_EQ(ended.ended_ms, world->now_ms());
  EXPECT_EQ(ended.last_seq, 2U);
  world->advance(milliseconds(500));
  EXPECT_EQ(worker->finish(*job, JobState::kFailed, 2, "end", 8, "no memory").value(), kOk);
  EXPECT_EQ(worker->finish(*job, JobState::kSucceeded, 2, "end", 0, "").value(), kFenced);
  EXPECT_EQ(record(id).ended_ms, ended.ended_ms);
  EXPECT_EQ(worker->put(*job, 3, "late").value(), kFenced);
  EXPECT_EQ(worker->beat(*job).value(), kFenced);
  EXPECT_EQ(worker->release(*job).value(), kFenced);
  EXPECT_EQ(server->cancel(id)->state, JobState::kFailed);
  EXPECT_FALSE(server->cancel(id)->cancel_requested);
  EXPECT_EQ(stream(id), "1-1:a 1-2:end");
  EXPECT_EQ(server->stats()->running, 0U);
}

TEST_P(QueueContract, UnknownJobsAreNotFoundAndFenced) {
  EXPECT_EQ(server->get("nobody").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(server->cancel("nobody").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(events->read("nobody", {}, 1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(server->place("nobody").value(), 0U);
  ClaimedJob job;
  job.job_id = "nobody";
  job.epoch = 1;
  EXPECT_EQ(worker->put(job, 1, "x").value(), kFenced);
  EXPECT_EQ(worker->beat(job).value(), kFenced);
  EXPECT_EQ(worker->release(job).value(), kFenced);
  EXPECT_EQ(worker->finish(job, JobState::kSucceeded, 1, "x", 0, "").value(), kFenced);
}

TEST_P(QueueContract, BeatKeepsTheLease) {
  const std::string id = submit("r1");
  const auto job = claim();
  for (int i = 0; i < 6; ++i) {
    world->advance(milliseconds(20'000));
    ASSERT_EQ(worker->beat(*job).value(), kOk);
    EXPECT_EQ(server->reconcile().value(), 0U);
  }
  EXPECT_EQ(record(id).state, JobState::kRunning);
  world->advance(milliseconds(29'999));
  EXPECT_EQ(server->reconcile().value(), 0U);
  world->advance(milliseconds(1));
  EXPECT_EQ(server->reconcile().value(), 1U);
  EXPECT_EQ(record(id).state, JobState::kQueued);
}

TEST_P(QueueContract, LostJobGoesToTheNextWorkerAndTheZombieIsFenced) {
  const std::string id = submit("r1");
  const std::string later = submit("r2");
  const auto zombie = claim();
  ASSERT_EQ(worker->put(*zombie, 1, "old").value(), kOk);
  lose_lease();
  // Nobody has taken it away yet: it may still write.
  EXPECT_EQ(worker->put(*zombie, 2, "old").value(), kOk);
  const auto job = claim(*other);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->job_id, id);  // before r2, which never ran
  EXPECT_EQ(job->epoch, 2U);
  EXPECT_EQ(job->attempt, 2U);
  EXPECT_EQ(job->spec, new_job("r1").spec);
  EXPECT_EQ(worker->put(*zombie, 3, "late").value(), kFenced);
  EXPECT_EQ(worker->beat(*zombie).value(), kFenced);
  EXPECT_EQ(worker->release(*zombie).value(), kFenced);
  EXPECT_EQ(worker->finish(*zombie, JobState::kSucceeded, 3, "late", 0, "").value(), kFenced);
  EXPECT_EQ(stream(id), "");
  ASSERT_EQ(other->put(*job, 1, "new").value(), kOk);
  EXPECT_EQ(stream(id, {1, 2}), "2-1:new");  // the older epoch's entries are gone
  ASSERT_EQ(other->finish(*job, JobState::kSucceeded, 2, "end", 0, "").value(), kOk);
  EXPECT_EQ(record(id).attempts, 2U);
  EXPECT_EQ(record(id).epoch, 2U);
  EXPECT_EQ(record(id).worker, "w2");
  EXPECT_EQ(claimed_id(), later);
}

TEST_P(QueueContract, LostLeaseThatIsQueuedAgainIsFencedToo) {
  submit("r1");
  const auto zombie = claim();
  lose_lease();
  ASSERT_EQ(server->reconcile().value(), 1U);
  EXPECT_EQ(worker->beat(*zombie).value(), kFenced);
  EXPECT_EQ(worker->finish(*zombie, JobState::kSucceeded, 1, "late", 0, "").value(), kFenced);
}

TEST_P(QueueContract, PoisonEndsAfterTheLastAttempt) {
  const std::string id = submit("r1");
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const auto job = claim();
    ASSERT_TRUE(job);
    EXPECT_EQ(job->attempt, static_cast<std::uint32_t>(attempt));
    lose_lease();
    EXPECT_EQ(server->reconcile().value(), 1U);
  }
  const JobRecord ended = record(id);
  EXPECT_EQ(ended.state, JobState::kFailed);
  EXPECT_EQ(ended.code, static_cast<std::int32_t>(ErrorCode::kInternal));
  EXPECT_EQ(ended.message, "3 workers were lost while they ran this job; the last one was w1");
  EXPECT_EQ(claimed_id(), "nothing");
  EXPECT_EQ(server->reconcile().value(), 0U);
}

TEST_P(QueueContract, ReleasedJobComesFirstAndDoesNotCountAsAttempt) {
  const std::string id = submit("r1");
  const std::string second = submit("r2");
  submit("low", Priority::kLow);
  for (int i = 0; i < 5; ++i) {
    const auto job = claim();
    ASSERT_TRUE(job);
    EXPECT_EQ(job->job_id, id);
    EXPECT_EQ(job->attempt, 1U);
    ASSERT_EQ(worker->put(*job, 1, "x").value(), kOk);
    EXPECT_EQ(worker->release(*job).value(), kOk);
    EXPECT_EQ(worker->release(*job).value(), kFenced);
    EXPECT_EQ(record(id).state, JobState::kQueued);
    EXPECT_EQ(record(id).worker, "");
    EXPECT_EQ(server->place(id).value(), 0U);
    EXPECT_EQ(server->place(second).value(), 1U);
  }
  EXPECT_EQ(claim()->epoch, 6U);
}

TEST_P(QueueContract, CancelEndsAQueuedJobAtOnce) {
  const std::string id = submit("r1");
  const std::string next = submit("r2");
  const JobRecord cancelled = server->cancel(id).value();
  EXPECT_EQ(cancelled.state, JobState::kCancelled);
  EXPECT_TRUE(cancelled.cancel_requested);
  EXPECT_EQ(cancelled.code, static_cast<std::int32_t>(ErrorCode::kCancelled));
  EXPECT_EQ(cancelled.ended_ms, world->now_ms());
  EXPECT_EQ(server->cancel(id)->state, JobState::kCancelled);
  EXPECT_EQ(server->stats()->queued, 1U);
  EXPECT_EQ(server->place(next).value(), 0U);
  EXPECT_EQ(claimed_id(), next);
}

TEST_P(QueueContract, CancelReachesTheWorkerByItsNextWrite) {
  const std::string id = submit("r1");
  const auto job = claim();
  ASSERT_EQ(worker->put(*job, 1, "a").value(), kOk);
  const JobRecord flagged = server->cancel(id).value();
  EXPECT_EQ(flagged.state, JobState::kRunning);
  EXPECT_TRUE(flagged.cancel_requested);
  EXPECT_EQ(worker->put(*job, 2, "b").value(), kCancelled);
  EXPECT_EQ(worker->beat(*job).value(), kCancelled);
  EXPECT_EQ(stream(id), "1-1:a");
  EXPECT_EQ(worker->finish(*job, JobState::kCancelled, 2, "end", 1, "stopped").value(), kOk);
  EXPECT_EQ(record(id).state, JobState::kCancelled);
  EXPECT_EQ(record(id).message, "stopped");
  EXPECT_EQ(stream(id), "1-1:a 1-2:end");
}

TEST_P(QueueContract, NoResultFollowsAnAcceptedCancel) {
  const std::string id = submit("r1");
  const auto job = claim();
  ASSERT_EQ(worker->put(*job, 1, "a").value(), kOk);
  ASSERT_TRUE(server->cancel(id));
  EXPECT_EQ(worker->finish(*job, JobState::kSucceeded, 2, "end", 0, "").value(), kCancelled);
  EXPECT_EQ(worker->finish(*job, JobState::kSucceeded, 2, "end", 0, "").value(), kCancelled);
  EXPECT_EQ(record(id).state, JobState::kCancelled);
  EXPECT_EQ(stream(id), "1-1:a");
  EXPECT_EQ(record(id).last_seq, 1U);
}

TEST_P(QueueContract, CancelledJobIsNotGivenToAnotherWorker) {
  const std::string lost = submit("r1");
  const std::string released = submit("r2");
  const auto job_1 = claim();
  const auto job_2 = claim(*other);
  ASSERT_TRUE(server->cancel(lost));
  ASSERT_TRUE(server->cancel(released));
  EXPECT_EQ(other->release(*job_2).value(), kCancelled);
  EXPECT_EQ(record(released).state, JobState::kCancelled);
  lose_lease();
  EXPECT_EQ(claimed_id(), "nothing");
  EXPECT_EQ(record(lost).state, JobState::kCancelled);
}

TEST_P(QueueContract, WaitingTooLongEndsAJobAtReconcileAndAtClaim) {
  NewJob impatient = new_job("r1");
  impatient.max_queue_wait = milliseconds(5'000);
  const std::string first = submit(impatient);
  impatient.request_id = "r2";
  world->advance(milliseconds(1'000));
  const std::string second = submit(impatient);
  const std::string patient = submit("r3");
  world->advance(milliseconds(3'999));
  EXPECT_EQ(server->reconcile().value(), 0U);
  world->advance(milliseconds(1));
  EXPECT_EQ(server->reconcile().value(), 1U);
  EXPECT_EQ(record(first).state, JobState::kExpired);
  EXPECT_EQ(record(first).code, static_cast<std::int32_t>(ErrorCode::kDeadlineExceeded));
  EXPECT_EQ(record(first).message, "no worker took the job within max_queue_wait (5000 ms)");
  world->advance(milliseconds(1'000));
  EXPECT_EQ(claimed_id(), patient);
  EXPECT_EQ(record(second).state, JobState::kExpired);
}

TEST_P(QueueContract, JobThatStartedOnceDoesNotExpire) {
  NewJob impatient = new_job("r1");
  impatient.max_queue_wait = milliseconds(5'000);
  const std::string id = submit(impatient);
  ASSERT_EQ(worker->release(*claim()).value(), kOk);
  world->advance(milliseconds(60'000));
  EXPECT_EQ(server->reconcile().value(), 0U);
  EXPECT_EQ(claimed_id(), id);
}

TEST_P(QueueContract, ListIsNewestFirstFilteredAndCut) {
  std::vector<std::string> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(submit("r" + std::to_string(i), i == 3 ? Priority::kLow : Priority::kNormal));
  }
  ASSERT_TRUE(server->cancel(all[1]));
  const auto job = claim();
  EXPECT_THAT(ids(server->list(std::nullopt, 10).value()), ElementsAre(all[3], all[2], all[1], all[0]));
  EXPECT_THAT(ids(server->list(std::nullopt, 2).value()), ElementsAre(all[3], all[2]));
  EXPECT_THAT(ids(server->list(JobState::kQueued, 10).value()), ElementsAre(all[3], all[2]));
  EXPECT_THAT(ids(server->list(JobState::kQueued, 1).value()), ElementsAre(all[3]));
  EXPECT_THAT(ids(server->list(JobState::kRunning, 10).value()), ElementsAre(all[0]));
  EXPECT_THAT(ids(server->list(JobState::kCancelled, 10).value()), ElementsAre(all[1]));
  EXPECT_THAT(ids(server->list(JobState::kFailed, 10).value()), ElementsAre());
  ASSERT_EQ(worker->release(*job).value(), kOk);
  EXPECT_THAT(ids(server->list(JobState::kQueued, 10).value()), ElementsAre(all[3], all[2], all[0]));
}

TEST_P(QueueContract, StatsCountAndTellTheLongestWait) {
  EXPECT_EQ(server->stats()->oldest_queued, milliseconds(0));
  submit("r1");
  world->advance(milliseconds(2'000));
  submit("r2", Priority::kHigh);
  world->advance(milliseconds(3'000));
  EXPECT_EQ(server->stats()->queued, 2U);
  EXPECT_EQ(server->stats()->oldest_queued, milliseconds(5'000));
  ASSERT_TRUE(claim());
  EXPECT_EQ(server->stats()->queued, 1U);
  EXPECT_EQ(server->stats()->running, 1U);
}

TEST_P(QueueContract, WorkersAreBelievedForFifteenSecondsModelsForEver) {
  ASSERT_TRUE(other->announce("wan-b", "about b", ""));
  ASSERT_TRUE(worker->announce("wan-a", "about a", "job-7"));
  auto workers = server->workers().value();
  ASSERT_EQ(workers.size(), 2U);
  EXPECT_EQ(workers[0].name, "w1");
  EXPECT_EQ(workers[0].announcement, "about a");
  EXPECT_EQ(workers[0].current_job, "job-7");
  EXPECT_EQ(workers[1].name, "w2");
  world->advance(milliseconds(14'999));
  EXPECT_EQ(server->workers()->size(), 2U);
  ASSERT_TRUE(worker->announce("wan-a", "more about a", ""));
  world->advance(milliseconds(1));
  workers = server->workers().value();
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(workers[0].announcement, "more about a");
  ASSERT_TRUE(server->reconcile());
  EXPECT_THAT(server->known_models().value(), ElementsAre("more about a", "about b"));
}

TEST_P(QueueContract, StreamAndRecordAreForgottenInTheirTime) {
  const std::string id = submit("r1");
  const auto job = claim();
  ASSERT_EQ(worker->finish(*job, JobState::kSucceeded, 1, "end", 0, "").value(), kOk);
  world->advance(milliseconds(599'999));
  EXPECT_EQ(stream(id), "1-1:end");
  world->advance(milliseconds(1));
  EXPECT_EQ(stream(id), "");
  EXPECT_EQ(events->read(id, {}, 1)->record.last_seq, 1U);  // tells a reader that it came too late
  world->advance(milliseconds(3'000'000));
  EXPECT_EQ(server->get(id).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(server->list(std::nullopt, 10)->empty());
  const SubmitOutcome again = server->submit(new_job("r1")).value();
  EXPECT_FALSE(again.duplicate);
  ASSERT_TRUE(server->reconcile());
  // Forgetting the old job leaves the request id with the new one.
  EXPECT_EQ(server->submit(new_job("r1"))->job_id, again.job_id);
  EXPECT_THAT(ids(server->list(std::nullopt, 10).value()), ElementsAre(again.job_id));
}

TEST_P(QueueContract, WaitingClaimIsWokenByASubmission) {
  std::optional<ClaimedJob> got;
  std::jthread waiting([&] { got = worker->claim(kLong, {}).value(); });
  const std::string id = submit("r1");
  waiting.join();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->job_id, id);
}

TEST_P(QueueContract, WaitingClaimIsWokenByARelease) {
  submit("r1");
  const auto job = claim(*other);
  std::optional<ClaimedJob> got;
  std::jthread waiting([&] { got = worker->claim(kLong, {}).value(); });
  ASSERT_EQ(other->release(*job).value(), kOk);
  waiting.join();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->epoch, 2U);
}

TEST_P(QueueContract, EachJobGoesToOneOfManyWaitingWorkers) {
  make(QueueLimits());
  constexpr int kJobs = 60;
  std::atomic<int> taken{0};
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const auto own = world->consumer("c" + std::to_string(i));
        while (taken < kJobs) {
          const auto job = own->claim(milliseconds(50), {}).value();
          if (job) {
            wrong += job->epoch == 1 && own->finish(*job, JobState::kSucceeded, 1, "", 0, "").value() == kOk ? 0 : 1;
            ++taken;
          }
        }
      });
    }
    for (int i = 0; i < kJobs; ++i) {
      submit("r" + std::to_string(i));
    }
  }
  EXPECT_EQ(taken, kJobs);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(server->list(JobState::kSucceeded, 1000)->size(), static_cast<std::size_t>(kJobs));
}

TEST_P(QueueContract, ClaimGivesUpAtItsTimeoutAndWhenStopped) {
  EXPECT_FALSE(worker->claim(milliseconds(30), {}).value());
  const auto begin = std::chrono::steady_clock::now();
  std::jthread waiting([&](std::stop_token stop) { EXPECT_FALSE(worker->claim(kLong, stop).value()); });
  waiting.request_stop();
  waiting.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong / 2);
  // The cut-off wait has left nothing behind.
  const std::string id = submit("r1");
  EXPECT_EQ(worker->claim(kLong, {}).value()->job_id, id);
}

TEST_P(QueueContract, ReadersAreWokenByEveryChange) {
  const std::string id = submit("r1");
  EXPECT_TRUE(events->wait_for_wakeups(milliseconds(20))->empty());  // from now on it listens
  const auto woken = [&] { return events->wait_for_wakeups(kLong).value(); };
  const auto first = claim();
  EXPECT_THAT(woken(), ElementsAre(id));
  ASSERT_EQ(worker->put(*first, 1, "a").value(), kOk);
  EXPECT_THAT(woken(), ElementsAre(id));
  ASSERT_EQ(worker->release(*first).value(), kOk);
  EXPECT_THAT(woken(), ElementsAre(id));
  ASSERT_TRUE(claim());
  EXPECT_THAT(woken(), ElementsAre(id));
  lose_lease();
  ASSERT_EQ(server->reconcile().value(), 1U);
  EXPECT_THAT(woken(), ElementsAre(id));
  const auto last = claim();
  EXPECT_THAT(woken(), ElementsAre(id));
  ASSERT_EQ(worker->finish(*last, JobState::kSucceeded, 1, "end", 0, "").value(), kOk);
  EXPECT_THAT(woken(), ElementsAre(id));
  const std::string cancelled = submit("r2");
  ASSERT_TRUE(server->cancel(cancelled));
  EXPECT_THAT(woken(), ElementsAre(cancelled));
  EXPECT_TRUE(events->wait_for_wakeups(milliseconds(20))->empty());
}

TEST_P(QueueContract, EverySourceHearsEveryWakeup) {
  const auto second = world->events();
  EXPECT_TRUE(events->wait_for_wakeups(milliseconds(20))->empty());
  EXPECT_TRUE(second->wait_for_wakeups(milliseconds(20))->empty());
  const std::string id = submit("r1");
  ASSERT_TRUE(claim());
  EXPECT_THAT(events->wait_for_wakeups(kLong).value(), ElementsAre(id));
  EXPECT_THAT(second->wait_for_wakeups(kLong).value(), ElementsAre(id));
}

TEST_P(QueueContract, InterruptEndsTheWaitForWakeups) {
  const auto begin = std::chrono::steady_clock::now();
  std::jthread waiting([&] { EXPECT_TRUE(events->wait_for_wakeups(kLong)->empty()); });
  events->interrupt();
  waiting.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong / 2);
}

}  // namespace

}  // namespace merope::queue
