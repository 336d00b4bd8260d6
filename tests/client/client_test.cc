#include "client/client.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/scripted_server.h"

namespace merope::client {
namespace {

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

const Error kDraining = unavailable("draining, resume at your cursor");

WatchScript send(std::vector<v1::JobEvent> events, std::optional<Error> error = {}) {
  return {std::move(events), std::move(error)};
}

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    options_.address = server_.address();
    options_.call_timeout = std::chrono::seconds(20);
    options_.reattach_first = std::chrono::milliseconds(5);
    options_.reattach_most = std::chrono::milliseconds(20);
    client_ = Client::create(options_);
  }

  ScriptedServer server_;
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
  server_.answer_submit({kDraining, kDraining});
  v1::GenerationRequest request;
  request.mutable_conditioning()->mutable_pictures()->add_files(std::string(3 << 20, 'x'));
  const auto response = client_->submit(request);
  ASSERT_TRUE(response) << response.error().message;
  const auto submitted = server_.submitted();
  ASSERT_EQ(submitted.size(), 3U);
  EXPECT_FALSE(submitted[0].request_id().empty());
  EXPECT_EQ(submitted[0].request_id(), submitted[2].request_id());
  EXPECT_EQ(submitted[2].conditioning().pictures().files(0).size(), std::size_t{3} << 20U);
}

TEST_F(ClientTest, RefusedRequestCarriesEveryViolation) {
  const std::vector<FieldViolation> violations = {{"frames", "wrong"}, {"trajectory.frames[3].pose", "wrong too"}};
  server_.answer_submit({invalid_fields(violations)});
  const auto response = client_->submit({});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(response.error().violations, violations);
  EXPECT_EQ(server_.submitted().size(), 1U) << "asking again would not help";
}

TEST_F(ClientTest, GenerateDeliversEverythingOnce) {
  server_.script_watch({send({fragment_event(1, 1, "ab"), fragment_event(1, 2, "c"), finished_event(1, 3, "abc")})});
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
  server_.script_watch({send({fragment_event(1, 1, "a"), fragment_event(1, 2, "b")}, kDraining),
                        send({}, kDraining),
                        send({fragment_event(1, 2, "b"), fragment_event(1, 3, "c")}),  // repeats one, then ends too early
                        send({finished_event(1, 4, "abc")})});
  Recorder recorder;
  const auto end = client_->watch("job-1", recorder);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_TRUE(end->verified);
  EXPECT_EQ(recorder.bytes, "abc");
  EXPECT_GE(recorder.reattached.size(), 2U);
  EXPECT_EQ(server_.watched_after().front(), (Cursor{0, 0}));
  EXPECT_EQ(server_.watched_after()[1], (Cursor{1, 2}));
  EXPECT_EQ(server_.watched_after().back(), (Cursor{1, 3}));
}

TEST_F(ClientTest, RestartedTellsTheSinkToDropTheOlderAttempt) {
  server_.script_watch(
      {send({fragment_event(1, 1, "old"), restarted_event(2), fragment_event(2, 1, "new"), finished_event(2, 2, "new")})});
  Recorder recorder;
  const auto end = client_->watch("job-1", recorder);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(recorder.bytes, "new");

  server_.script_watch(
      {send({fragment_event(1, 1, "old")}, kDraining), send({fragment_event(2, 1, "new"), finished_event(2, 2, "new")})});
  Recorder unaware;
  ASSERT_TRUE(client_->watch("job-1", unaware));
  EXPECT_EQ(unaware.bytes, "new");
  ASSERT_EQ(unaware.events.size(), 4U);
  EXPECT_EQ(unaware.events[1].restarted().epoch(), 2U);
}

TEST_F(ClientTest, HolesAndWrongBytesAreDataLoss) {
  server_.script_watch({send({fragment_event(1, 1, "a"), fragment_event(1, 3, "c")})});
  Recorder recorder;
  const auto hole = client_->watch("job-1", recorder);
  ASSERT_FALSE(hole);
  EXPECT_EQ(hole.error().code, ErrorCode::kDataLoss);

  server_.script_watch({send({fragment_event(1, 1, "a"), finished_event(1, 2, "b")})});
  const auto wrong = client_->watch("job-1", recorder);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(server_.watched_after().size(), 2U) << "no second try";
}

TEST_F(ClientTest, FailedJobIsAnEndAndNotAnErrorOfTheCall) {
  server_.script_watch(
      {send({fragment_event(1, 1, "a"), failed_event(1, 2, ErrorCode::kInternal, "denoise: not a number in step 3")})});
  Recorder recorder;
  const auto end = client_->watch("job-1", recorder);
  ASSERT_TRUE(end) << end.error().message;
  ASSERT_TRUE(end->failure);
  EXPECT_EQ(end->failure->code, ErrorCode::kInternal);
  EXPECT_EQ(end->failure->message, "denoise: not a number in step 3");
}

TEST_F(ClientTest, ErrorOfTheSinkEndsTheWatchAtOnce) {
  server_.script_watch({send({fragment_event(1, 1, "a"), fragment_event(1, 2, "b"), finished_event(1, 3, "ab")})});
  Recorder recorder;
  recorder.on_each = [](const v1::JobEvent&) { return Status(Error{ErrorCode::kResourceExhausted, "disk full", {}}); };
  const auto end = client_->watch("job-1", recorder);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message, "disk full");
  EXPECT_EQ(recorder.events.size(), 1U);
  EXPECT_EQ(server_.watched_after().size(), 1U) << "a retryable code of the sink is not one of the call";
}

TEST_F(ClientTest, StopEndsAWatchThatHearsNothing) {
  server_.script_watch({{.events = {fragment_event(1, 1, "a")}, .hang = true}});
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
  server_.stop();
  Recorder recorder;
  const auto end = client_->watch("job-1", recorder);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(end.error().message.find(options_.address), std::string::npos) << end.error().message;
}

TEST_F(ClientTest, WaitForServerGivesUpAfterItsTime) {
  server_.stop();
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
  ASSERT_TRUE(cancelled);
  EXPECT_TRUE(cancelled->cancel_requested());
  const auto capabilities = client_->capabilities();
  ASSERT_TRUE(capabilities);
  EXPECT_EQ(capabilities->models(0).name(), "toy");
}

}  // namespace
}  // namespace merope::client
