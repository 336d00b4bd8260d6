// The client against a server in this process that follows a script: it breaks streams, restarts attempts and lies.
#include "client/client.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "google/rpc/status.pb.h"
#include "merope/v1/generation.grpc.pb.h"

namespace merope::client {
namespace {

using Writer = grpc::ServerWriter<v1::JobEvent>;
using WatchStep = std::function<grpc::Status(grpc::ServerContext&, const v1::WatchRequest&, Writer&)>;

class ScriptedService final : public v1::GenerationService::Service {
 public:
  grpc::Status Submit(grpc::ServerContext*, const v1::GenerationRequest* request, v1::SubmitResponse* response) override {
    const std::lock_guard lock(mutex);
    submitted.push_back(*request);
    if (!submit_answers.empty()) {
      const grpc::Status answer = submit_answers.front();
      submit_answers.pop_front();
      if (!answer.ok()) {
        return answer;
      }
    }
    response->set_job_id("job-1");
    response->set_request_id(request->request_id());
    return grpc::Status::OK;
  }

  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request, Writer* writer) override {
    WatchStep step;
    {
      const std::lock_guard lock(mutex);
      watched_after.push_back({request->after().epoch(), request->after().seq()});
      if (watch_steps.empty()) {
        return {grpc::StatusCode::FAILED_PRECONDITION, "the script is over"};
      }
      step = watch_steps.front();
      watch_steps.pop_front();
    }
    return step(*context, *request, *writer);
  }

  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request, v1::Job* job) override {
    if (request->job_id() != "job-1") {
      return {grpc::StatusCode::NOT_FOUND, "no job " + request->job_id()};
    }
    job->set_job_id("job-1");
    job->set_state(v1::JOB_STATE_RUNNING);
    return grpc::Status::OK;
  }

  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request, v1::ListJobsResponse* response) override {
    for (std::uint32_t i = 0; i < request->limit(); ++i) {
      response->add_jobs()->set_state(request->state());
    }
    return grpc::Status::OK;
  }

  std::mutex mutex;
  std::vector<v1::GenerationRequest> submitted;
  std::deque<grpc::Status> submit_answers;
  std::deque<WatchStep> watch_steps;
  std::vector<Cursor> watched_after;
};

struct Recorder final : EventSink {
  Status on_event(const v1::JobEvent& event) override {
    if (event.has_restarted()) {
      bytes.clear();
    }
    bytes += event.fragment().data();
    events.push_back(event);
    if (on_each) {
      return on_each(event);
    }
    return {};
  }
  void on_reattach(const Error& reason, std::chrono::milliseconds) override { reattached.push_back(reason); }

  std::string bytes;
  std::vector<v1::JobEvent> events;
  std::vector<Error> reattached;
  std::function<Status(const v1::JobEvent&)> on_each;
};

v1::JobEvent at(std::uint64_t epoch, std::uint64_t seq) {
  v1::JobEvent event;
  event.set_job_id("job-1");
  event.mutable_cursor()->set_epoch(epoch);
  event.mutable_cursor()->set_seq(seq);
  return event;
}

v1::JobEvent fragment(std::uint64_t epoch, std::uint64_t seq, const std::string& data) {
  v1::JobEvent event = at(epoch, seq);
  event.mutable_fragment()->set_data(data);
  return event;
}

v1::JobEvent finished(std::uint64_t epoch, std::uint64_t seq, const std::string& all) {
  v1::JobEvent event = at(epoch, seq);
  event.mutable_finished()->set_bytes(all.size());
  event.mutable_finished()->set_sha256(sha256_hex(all));
  return event;
}

// Writes these events and ends the call so.
WatchStep send(std::vector<v1::JobEvent> events, grpc::Status status = grpc::Status::OK) {
  return [=](grpc::ServerContext&, const v1::WatchRequest&, Writer& writer) {
    for (const v1::JobEvent& event : events) {
      writer.Write(event);
    }
    return status;
  };
}

const grpc::Status kDraining(grpc::StatusCode::UNAVAILABLE, "draining, resume at your cursor");

class ClientTest : public testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.SetMaxReceiveMessageSize(64 << 20);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    options_.address = "127.0.0.1:" + std::to_string(port);
    options_.call_timeout = std::chrono::seconds(20);
    options_.reattach_first = std::chrono::milliseconds(5);
    options_.reattach_most = std::chrono::milliseconds(20);
    client_ = Client::create(options_);
  }
  void TearDown() override {
    if (server_) {
      server_->Shutdown(std::chrono::system_clock::now());
    }
  }

  ScriptedService service_;
  std::unique_ptr<grpc::Server> server_;
  ClientOptions options_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, SubmitMakesUpARequestIdAndKeepsIt) {
  const auto first = client_->submit({});
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_FALSE(first->request_id().empty());
  v1::GenerationRequest named;
  named.set_request_id("mine");
  const auto second = client_->submit(named);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->request_id(), "mine");
}

TEST_F(ClientTest, UnavailableSubmitIsRepeatedWithTheSameIdHoweverLargeItIs) {
  service_.submit_answers = {kDraining, kDraining};
  v1::GenerationRequest request;
  request.mutable_conditioning()->mutable_pictures()->add_files(std::string(3 << 20, 'x'));
  const auto response = client_->submit(request);
  ASSERT_TRUE(response) << response.error().message;
  ASSERT_EQ(service_.submitted.size(), 3U);
  EXPECT_FALSE(service_.submitted[0].request_id().empty());
  EXPECT_EQ(service_.submitted[0].request_id(), service_.submitted[2].request_id());
  EXPECT_EQ(service_.submitted[2].conditioning().pictures().files(0).size(), std::size_t{3} << 20U);
}

TEST_F(ClientTest, RefusedRequestCarriesEveryViolation) {
  google::rpc::BadRequest bad;
  for (const char* field : {"frames", "trajectory.frames[3].pose"}) {
    auto* violation = bad.add_field_violations();
    violation->set_field(field);
    violation->set_description("wrong");
  }
  google::rpc::Status details;
  details.set_code(3);
  details.add_details()->PackFrom(bad);
  service_.submit_answers = {{grpc::StatusCode::INVALID_ARGUMENT, "two fields", details.SerializeAsString()}};
  const auto response = client_->submit({});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(response.error().violations,
            (std::vector<FieldViolation>{{"frames", "wrong"}, {"trajectory.frames[3].pose", "wrong"}}));
  EXPECT_EQ(service_.submitted.size(), 1U) << "asking again would not help";
}

TEST_F(ClientTest, GenerateDeliversEverythingOnce) {
  service_.watch_steps = {send({fragment(1, 1, "ab"), fragment(1, 2, "c"), finished(1, 3, "abc")})};
  Recorder recorder;
  const auto end = client_->generate({}, recorder);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_FALSE(end->failure);
  EXPECT_TRUE(end->verified);
  EXPECT_EQ(recorder.bytes, "abc");
  ASSERT_EQ(recorder.events.size(), 4U);
  EXPECT_TRUE(recorder.events[0].has_accepted());
}

TEST_F(ClientTest, BrokenWatchGoesOnBehindTheLastEvent) {
  service_.watch_steps = {send({fragment(1, 1, "a"), fragment(1, 2, "b")}, kDraining),
                          send({}, kDraining),
                          send({fragment(1, 2, "b"), fragment(1, 3, "c")}),  // repeats one, then ends too early
                          send({finished(1, 4, "abc")})};
  Recorder recorder;
  const auto end = client_->watch("job-1", recorder);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_TRUE(end->verified);
  EXPECT_EQ(recorder.bytes, "abc");
  EXPECT_GE(recorder.reattached.size(), 2U);
  EXPECT_EQ(service_.watched_after.front(), (Cursor{0, 0}));
  EXPECT_EQ(service_.watched_after[1], (Cursor{1, 2}));
  EXPECT_EQ(service_.watched_after.back(), (Cursor{1, 3}));
}

TEST_F(ClientTest, RestartedTellsTheSinkToDropTheOlderAttempt) {
  v1::JobEvent restarted = at(2, 0);
  restarted.mutable_restarted()->set_epoch(2);
  service_.watch_steps = {send({fragment(1, 1, "old"), restarted, fragment(2, 1, "new"), finished(2, 2, "new")})};
  Recorder recorder;
  const auto end = client_->watch("job-1", recorder);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(recorder.bytes, "new");

  service_.watch_steps = {send({fragment(1, 1, "old")}, kDraining), send({fragment(2, 1, "new"), finished(2, 2, "new")})};
  Recorder unaware;
  ASSERT_TRUE(client_->watch("job-1", unaware));
  EXPECT_EQ(unaware.bytes, "new");
  ASSERT_EQ(unaware.events.size(), 4U);
  EXPECT_EQ(unaware.events[1].restarted().epoch(), 2U);
}

TEST_F(ClientTest, HolesAndWrongBytesAreDataLoss) {
  service_.watch_steps = {send({fragment(1, 1, "a"), fragment(1, 3, "c")})};
  Recorder recorder;
  const auto hole = client_->watch("job-1", recorder);
  ASSERT_FALSE(hole);
  EXPECT_EQ(hole.error().code, ErrorCode::kDataLoss);

  service_.watch_steps = {send({fragment(1, 1, "a"), finished(1, 2, "b")})};
  const auto wrong = client_->watch("job-1", recorder);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(service_.watched_after.size(), 2U) << "no second try";
}

TEST_F(ClientTest, FailedJobIsAnEndAndNotAnErrorOfTheCall) {
  v1::JobEvent failed = at(1, 2);
  failed.mutable_failed()->set_code(13);
  failed.mutable_failed()->set_message("denoise: not a number in step 3");
  service_.watch_steps = {send({fragment(1, 1, "a"), failed})};
  Recorder recorder;
  const auto end = client_->watch("job-1", recorder);
  ASSERT_TRUE(end) << end.error().message;
  ASSERT_TRUE(end->failure);
  EXPECT_EQ(end->failure->code, ErrorCode::kInternal);
  EXPECT_EQ(end->failure->message, "denoise: not a number in step 3");
}

TEST_F(ClientTest, ErrorOfTheSinkEndsTheWatchAtOnce) {
  service_.watch_steps = {send({fragment(1, 1, "a"), fragment(1, 2, "b"), finished(1, 3, "ab")})};
  Recorder recorder;
  recorder.on_each = [](const v1::JobEvent&) { return Status(Error{ErrorCode::kResourceExhausted, "disk full", {}}); };
  const auto end = client_->watch("job-1", recorder);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message, "disk full");
  EXPECT_EQ(recorder.events.size(), 1U);
  EXPECT_EQ(service_.watched_after.size(), 1U) << "a retryable code of the sink is not one of the call";
}

TEST_F(ClientTest, StopEndsAWatchThatHearsNothing) {
  service_.watch_steps = {[](grpc::ServerContext& context, const v1::WatchRequest&, Writer& writer) {
    writer.Write(fragment(1, 1, "a"));
    while (!context.IsCancelled()) {
      std::this_thread::yield();
    }
    return grpc::Status::CANCELLED;
  }};
  std::stop_source stop;
  Recorder recorder;
  recorder.on_each = [&](const v1::JobEvent&) {
    stop.request_stop();
    return Status();
  };
  const auto end = client_->watch("job-1", recorder, stop.get_token());
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::kCancelled);
}

TEST_F(ClientTest, WatchGivesUpWhenTheServerStaysAway) {
  options_.reattach_for = std::chrono::milliseconds(50);
  client_ = Client::create(options_);
  server_->Shutdown(std::chrono::system_clock::now());
  Recorder recorder;
  const auto end = client_->watch("job-1", recorder);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(end.error().message.find(options_.address), std::string::npos) << end.error().message;
}

TEST_F(ClientTest, WaitForServerGivesUpAfterItsTime) {
  server_->Shutdown(std::chrono::system_clock::now());
  options_.wait_for_server = std::chrono::milliseconds(50);
  const auto job = Client::create(options_)->get_job("job-1");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(job.error().message.find("within 50 ms"), std::string::npos) << job.error().message;
}

TEST_F(ClientTest, JobsAreAskedForAndListed) {
  const auto job = client_->get_job("job-1");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->state(), v1::JOB_STATE_RUNNING);
  const auto unknown = client_->get_job("job-2");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  const auto jobs = client_->list_jobs(v1::JOB_STATE_FAILED, 2);
  ASSERT_TRUE(jobs);
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_EQ(jobs->front().state(), v1::JOB_STATE_FAILED);
  const auto cancelled = client_->cancel("job-1");
  ASSERT_FALSE(cancelled) << "the script has no Cancel";
  EXPECT_EQ(cancelled.error().code, ErrorCode::kUnimplemented);
}

}  // namespace
}  // namespace merope::client
