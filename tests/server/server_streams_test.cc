// Watch and Generate: order, resumption, restarts, holes, slow readers, drain.
#include <future>

#include "tests/server/server_fixture.h"

namespace merope::server::testing {
namespace {

using merope::testing::good_request;

std::string progress(std::uint32_t step) {
  return wire::encode_progress(v1::STAGE_DENOISE, step, 4, std::nullopt);
}

std::vector<std::string> kinds_of(const std::vector<v1::JobEvent>& events) {
  std::vector<std::string> kinds;
  for (const v1::JobEvent& event : events) {
    const auto* field = v1::JobEvent::descriptor()->FindFieldByNumber(event.event_case());
    kinds.push_back(field != nullptr ? field->name() : "nothing");
  }
  return kinds;
}

using Kinds = std::vector<std::string>;

TEST_F(ServerTest, GenerateStreamsAJobFromAcceptedToFinished) {
  start();
  v1::GenerationRequest request = good_request();
  request.set_request_id("whole");
  Stream stream = generate(request);
  const auto accepted = stream.next();
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->accepted().request_id(), "whole");
  EXPECT_FALSE(accepted->accepted().duplicate());
  const auto queued = stream.next();
  ASSERT_TRUE(queued);
  EXPECT_TRUE(queued->has_queued());

  const queue::ClaimedJob job = claimed();
  EXPECT_EQ(job.job_id, accepted->job_id());
  put(job, 1, wire::encode_started("worker-1", job.epoch, job.attempt));
  put(job, 2, progress(1));
  put(job, 3, wire::encode_fragment("start segment", 0, 0, 0).at(0));
  finish(job, 4);
  const auto [events, status] = stream.rest();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(kinds_of(events), (Kinds{"started", "progress", "fragment", "finished"}));
  EXPECT_EQ(events[2].fragment().data(), "start segment");
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].job_id(), job.job_id);
    EXPECT_EQ(events[i].cursor().epoch(), job.epoch);
    EXPECT_EQ(events[i].cursor().seq(), i + 1);
  }
  EXPECT_TRUE(eventually([&] { return metric("merope_server_watchers") == 0; }));
}

TEST_F(ServerTest, GenerateTellsWhatIsWrong) {
  start();
  v1::GenerationRequest request = good_request();
  request.set_steps(1'000'000);
  const auto [events, status] = generate(request).rest();
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(details_of(status).bad_request.field_violations(0).field(), "steps");
}

TEST_F(ServerTest, WatchResumesAtEveryCursorWithoutHoleOrDouble) {
  start();
  const std::string id = submitted();
  const queue::ClaimedJob job = claimed();
  constexpr std::uint64_t kEvents = 12;
  for (std::uint64_t seq = 1; seq < kEvents; ++seq) {
    put(job, seq, progress(static_cast<std::uint32_t>(seq)));
  }
  finish(job, kEvents);
  for (std::uint64_t have = 0; have <= kEvents; ++have) {
    const auto [events, status] = watch(id, {job.epoch, have}).rest();
    EXPECT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(events.size(), kEvents - have);
    for (std::size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(events[i].cursor().seq(), have + i + 1);
    }
  }
}

TEST_F(ServerTest, ManyWatchersGetTheSameStream) {
  start();
  const std::string id = submitted();
  std::vector<std::future<std::vector<v1::JobEvent>>> watchers;
  for (int i = 0; i < 20; ++i) {
    watchers.push_back(std::async(std::launch::async, [&] { return watch(id).rest().first; }));
  }
  ASSERT_TRUE(eventually([&] { return metric("merope_server_watchers") == 20; }));
  const queue::ClaimedJob job = claimed();
  for (std::uint64_t seq = 1; seq <= 30; ++seq) {
    put(job, seq, progress(static_cast<std::uint32_t>(seq)));
  }
  finish(job, 31);
  for (auto& watcher : watchers) {
    std::vector<v1::JobEvent> events = watcher.get();
    std::erase_if(events, [](const v1::JobEvent& event) { return event.has_queued(); });
    ASSERT_EQ(events.size(), 31U);
    for (std::size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(events[i].cursor().seq(), i + 1);
    }
  }
}

TEST_F(ServerTest, WatchOfAnUnknownJobIsNotFound) {
  start();
  EXPECT_EQ(watch("job-unknown").rest().second.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(watch("").rest().second.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const std::string id = submitted();
  const grpc::Status status = watch(id, {7, 1}).rest().second;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(details_of(status).bad_request.field_violations(0).field(), "after");
}

TEST_F(ServerTest, QueuedIsRepeatedWhileAJobWaits) {
  config_.heartbeat = std::chrono::milliseconds(30);
  start();
  submitted();
  const std::string second = submitted();
  Stream stream = watch(second);
  for (int i = 0; i < 3; ++i) {
    const auto event = stream.next();
    ASSERT_TRUE(event);
    ASSERT_TRUE(event->has_queued());
    EXPECT_EQ(event->queued().place(), 1U);
  }
  claimed();
  ASSERT_TRUE(eventually([&] {
    const auto event = stream.next();
    return event && event->has_queued() && event->queued().place() == 0;
  }));
  stream.context->TryCancel();
}

TEST_F(ServerTest, ANewAttemptVoidsTheOldOne) {
  start();
  const std::string id = submitted();
  const queue::ClaimedJob first = claimed();
  put(first, 1, progress(1));
  put(first, 2, progress(2));
  Stream stream = watch(id);
  EXPECT_EQ(stream.next()->progress().step(), 1U);
  EXPECT_EQ(stream.next()->progress().step(), 2U);

  now_ms_ += config_.queue.lease.count() + 1;
  const queue::ClaimedJob second = claimed();
  EXPECT_GT(second.epoch, first.epoch);
  put(second, 1, progress(1));
  finish(second, 2);
  auto [events, status] = stream.rest();
  EXPECT_TRUE(status.ok());
  std::erase_if(events, [](const v1::JobEvent& event) { return event.has_queued(); });
  EXPECT_EQ(kinds_of(events), (Kinds{"restarted", "progress", "finished"}));
  EXPECT_EQ(events[0].restarted().epoch(), second.epoch);

  // A client that comes back with a cursor of the lost attempt is told the same.
  EXPECT_EQ(kinds_of(watch(id, {first.epoch, 1}).rest().first), (Kinds{"restarted", "progress", "finished"}));
}

TEST_F(ServerTest, AHoleEndsTheStreamAndNeverMakesItShorter) {
  start();
  const std::string id = submitted();
  const queue::ClaimedJob job = claimed();
  for (std::uint64_t seq = 1; seq <= 5; ++seq) {
    put(job, seq, progress(1));
  }
  finish(job, 6);
  for (const std::uint64_t hidden : {1U, 3U, 6U}) {
    faults_.hide_seq = hidden;
    const auto [events, status] = watch(id).rest();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS) << "entry " << hidden;
    EXPECT_LT(events.size(), hidden);
  }
}

TEST_F(ServerTest, CancelOfAQueuedJobEndsItsStream) {
  start();
  const std::string id = submitted();
  Stream stream = watch(id);
  ASSERT_TRUE(stream.next()->has_queued());
  grpc::ClientContext context;
  v1::CancelRequest request;
  request.set_job_id(id);
  v1::Job job;
  ASSERT_TRUE(stub_->Cancel(&context, request, &job).ok());
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELLED);
  const auto [events, status] = stream.rest();
  EXPECT_TRUE(status.ok());
  ASSERT_EQ(kinds_of(events), Kinds{"failed"});
  EXPECT_EQ(events[0].failed().code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ServerTest, CancelOfARunningJobReachesTheWorker) {
  start();
  const std::string id = submitted();
  const queue::ClaimedJob claimed_job = claimed();
  grpc::ClientContext context;
  v1::CancelRequest request;
  request.set_job_id(id);
  v1::Job job;
  ASSERT_TRUE(stub_->Cancel(&context, request, &job).ok());
  EXPECT_EQ(job.state(), v1::JOB_STATE_RUNNING);
  EXPECT_TRUE(job.cancel_requested());
  EXPECT_EQ(*worker_->put(claimed_job, 1, progress(1)), queue::LeaseAnswer::kCancelled);
}

TEST_F(ServerTest, AWatcherThatGoesDoesNotTakeTheJobWithIt) {
  start();
  const std::string id = submitted();
  Stream stream = watch(id);
  ASSERT_TRUE(stream.next());
  stream.context->TryCancel();
  EXPECT_EQ(stream.rest().second.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(eventually([&] { return metric("merope_server_watchers") == 0; }));
  EXPECT_EQ(queue_->submitter()->get(id)->state, queue::JobState::kQueued);
}

TEST_F(ServerTest, StreamsGoOnWhenTheQueueComesBack) {
  start();
  const std::string id = submitted();
  const queue::ClaimedJob job = claimed();
  put(job, 1, progress(1));
  Stream stream = watch(id);
  ASSERT_TRUE(stream.next());
  faults_.away = true;
  put(job, 2, progress(2));
  ASSERT_TRUE(eventually([&] { return faults_.failed_reads > 0; }));
  finish(job, 3);
  faults_.away = false;
  const auto [events, status] = stream.rest();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(kinds_of(events), (Kinds{"progress", "finished"}));
}

TEST_F(ServerTest, ASlowReaderHoldsLittleMemoryAndCanResume) {
  config_.slow_reader = std::chrono::milliseconds(300);
  start();
  const std::string id = submitted();
  const queue::ClaimedJob job = claimed();
  constexpr std::uint64_t kFragments = 160;  // 40 MB
  const std::string data(wire::kMaxFragmentPartBytes, 'x');
  for (std::uint64_t seq = 1; seq <= kFragments; ++seq) {
    put(job, seq, wire::encode_fragment(data, static_cast<std::uint32_t>(seq - 1), 0, 1).at(0));
  }
  finish(job, kFragments + 1);

  Stream stream = watch(id);
  ASSERT_TRUE(eventually([&] { return metric("merope_server_slow_readers_total") == 1; }));
  EXPECT_LT(faults_.bytes_read, kFragments * data.size() / 2) << "the rest stays in the queue";
  auto [events, status] = stream.rest();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  ASSERT_FALSE(events.empty());

  const v1::Cursor last = events.back().cursor();
  const auto [rest, end] = watch(id, {last.epoch(), last.seq()}).rest();
  EXPECT_TRUE(end.ok()) << end.error_message();
  events.insert(events.end(), rest.begin(), rest.end());
  ASSERT_EQ(events.size(), kFragments + 1);
  for (std::size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].cursor().seq(), i + 1);
  }
}

TEST_F(ServerTest, LimitsTheNumberOfStreams) {
  config_.max_watchers = 1;
  start();
  const std::string id = submitted();
  Stream first = watch(id);
  ASSERT_TRUE(first.next());
  EXPECT_EQ(watch(id).rest().second.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  first.context->TryCancel();
}

TEST_F(ServerTest, DrainTellsWatchersWhereToResume) {
  start();
  const std::string id = submitted();
  const queue::ClaimedJob job = claimed();
  put(job, 1, progress(1));
  Stream stream = watch(id);
  ASSERT_TRUE(stream.next());
  const auto before = std::chrono::steady_clock::now();
  app_->drain();
  EXPECT_LT(std::chrono::steady_clock::now() - before, config_.drain);
  const auto [events, status] = stream.rest();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_NE(status.error_message().find("after cursor " + std::to_string(job.epoch) + "-1"), std::string::npos)
      << status.error_message();

  // At another server the stream goes on.
  auto second = ServerApp::start(config_, second_queue_end());
  ASSERT_TRUE(second);
  stub_ = v1::GenerationService::NewStub(grpc::CreateChannel((*second)->address(), grpc::InsecureChannelCredentials()));
  finish(job, 2);
  EXPECT_EQ(kinds_of(watch(id, {job.epoch, 1}).rest().first), Kinds{"finished"});
}

}  // namespace
}  // namespace merope::server::testing
