// Calls that are answered once, and what the server does when its queue does not answer.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <set>
#include <thread>

#include <grpcpp/generic/generic_stub.h>

#include "tests/media/picture_bytes.h"
#include "tests/server/server_fixture.h"

namespace merope::server::testing {
namespace {

using merope::testing::good_request;

// One message to a service whose generated code is not here, and the first message back.
std::string call_raw(const std::shared_ptr<grpc::Channel>& channel,
                     const std::string& method,
                     const std::string& message,
                     grpc::Status& status) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  auto call = stub.PrepareCall(&context, method, &queue);
  void* tag = nullptr;
  bool ok = false;
  const auto wait = [&] { return queue.Next(&tag, &ok) && ok; };
  const grpc::Slice slice(message);
  grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  call->StartCall(nullptr);
  wait();
  call->WriteLast(request, grpc::WriteOptions(), nullptr);
  wait();
  call->Read(&response, nullptr);
  const bool got_one = wait();
  call->Finish(&status, nullptr);
  wait();
  std::string bytes;
  if (got_one) {
    std::vector<grpc::Slice> slices;
    response.Dump(&slices);
    for (const grpc::Slice& part : slices) {
      bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
    }
  }
  return bytes;
}

std::string health(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::Status status;
  const std::string answer = call_raw(channel, "/grpc.health.v1.Health/Check", "", status);
  return answer == std::string("\x08\x01")   ? "SERVING"
         : answer == std::string("\x08\x02") ? "NOT_SERVING"
                                             : status.error_message();
}

std::string http_get(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string question = "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    send(fd, question.data(), question.size(), MSG_NOSIGNAL);
    char buffer[4096];
    for (ssize_t n = 0; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(n));
    }
  }
  close(fd);
  return answer;
}

TEST_F(ServerTest, SubmitQueuesAJobThatAWorkerCanRead) {
  start();
  v1::GenerationRequest request = good_request();
  request.set_request_id("mine");
  request.set_prompt("a street");
  request.mutable_conditioning()->mutable_pictures()->add_files(media::testing::black_png(64, 32));
  v1::SubmitResponse response;
  ASSERT_TRUE(submit(request, &response).ok());
  EXPECT_EQ(response.request_id(), "mine");
  EXPECT_FALSE(response.duplicate());

  const queue::ClaimedJob job = claimed();
  EXPECT_EQ(job.job_id, response.job_id());
  const auto stored = wire::parse_stored_job(job.spec, job.input);
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(stored->spec.prompt, "a street");
  EXPECT_EQ(stored->spec.n_conditioning_frames, 1);
  EXPECT_EQ(stored->conditioning.pictures.at(0), media::testing::black_png(64, 32));
}

TEST_F(ServerTest, NamesEveryWrongFieldAndQueuesNothing) {
  start();
  v1::GenerationRequest request = good_request();
  request.set_fps(1000);
  request.mutable_trajectory()->mutable_frames(3)->set_pose(0, 2);
  request.mutable_conditioning()->mutable_pictures()->add_files("GIF89a");
  v1::SubmitResponse response;
  const grpc::Status status = submit(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const Details details = details_of(status);
  std::set<std::string> fields;
  for (const auto& violation : details.bad_request.field_violations()) {
    fields.insert(violation.field());
  }
  EXPECT_EQ(fields, (std::set<std::string>{"fps", "trajectory.frames[3].pose", "conditioning.pictures.files[0]"}));
  EXPECT_EQ(details.info.reason(), "INVALID_FIELDS");
  EXPECT_FALSE(details.retry.has_retry_delay());
  EXPECT_EQ(queue_->submitter()->stats()->queued, 0U);
}

TEST_F(ServerTest, KeepsManyViolationsWithinTheTrailers) {
  start();
  v1::GenerationRequest request = good_request(49);
  for (int i = 0; i < 49; ++i) {
    request.mutable_trajectory()->mutable_frames(i)->set_pose(0, 2);
  }
  request.set_model(std::string(100'000, 'm'));
  v1::SubmitResponse response;
  const grpc::Status status = submit(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_LE(status.error_details().size(), 4096U);
  EXPECT_GT(details_of(status).bad_request.field_violations_size(), 10);
}

TEST_F(ServerTest, GivesTheSameJobForTheSameRequest) {
  start();
  v1::GenerationRequest request = good_request();
  request.set_request_id("twice");
  std::vector<std::future<std::pair<grpc::StatusCode, std::string>>> calls;
  for (int i = 0; i < 50; ++i) {
    calls.push_back(std::async(std::launch::async, [&] {
      v1::SubmitResponse response;
      const grpc::Status status = submit(request, &response);
      return std::pair(status.error_code(), response.job_id());
    }));
  }
  std::set<std::string> jobs;
  for (auto& call : calls) {
    const auto [code, job] = call.get();
    EXPECT_EQ(code, grpc::StatusCode::OK);
    jobs.insert(job);
  }
  EXPECT_EQ(jobs.size(), 1U);
  EXPECT_EQ(queue_->submitter()->stats()->queued, 1U);

  request.set_prompt("something else");
  v1::SubmitResponse response;
  EXPECT_EQ(submit(request, &response).error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(queue_->submitter()->stats()->queued, 1U);
}

TEST_F(ServerTest, SaysThatNoModelIsKnownYet) {
  start(false);
  v1::SubmitResponse response;
  const grpc::Status status = submit(good_request(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_NE(status.error_message().find("no worker has announced a model"), std::string::npos);
  EXPECT_GT(details_of(status).retry.retry_delay().seconds(), 0);
  announce();
  EXPECT_TRUE(submit(good_request(), &response).ok()) << "a model that came meanwhile is known at once";
}

TEST_F(ServerTest, RefusesWhatDoesNotFitIntoTheQueue) {
  config_.queue.max_queued = 1;
  start();
  submitted();
  v1::SubmitResponse response;
  const grpc::Status status = submit(good_request(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_GT(details_of(status).retry.retry_delay().seconds(), 0);
}

TEST_F(ServerTest, TellsWhereJobsStand) {
  start();
  const std::string first = submitted();
  const std::string second = submitted();
  claimed();
  grpc::ClientContext context;
  v1::GetJobRequest request;
  request.set_job_id(first);
  v1::Job job;
  ASSERT_TRUE(stub_->GetJob(&context, request, &job).ok());
  EXPECT_EQ(job.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(job.worker(), "worker-1");
  EXPECT_EQ(job.attempts(), 1U);
  EXPECT_EQ(job.submitted_unix_ms(), now_ms_.load());

  grpc::ClientContext list_context;
  v1::ListJobsRequest list_request;
  list_request.set_state(v1::JOB_STATE_QUEUED);
  v1::ListJobsResponse list;
  ASSERT_TRUE(stub_->ListJobs(&list_context, list_request, &list).ok());
  ASSERT_EQ(list.jobs_size(), 1);
  EXPECT_EQ(list.jobs(0).job_id(), second);
}

TEST_F(ServerTest, RefusesUnknownJobsAndBadArguments) {
  start();
  const auto get = [&](const std::string& id) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_job_id(id);
    v1::Job job;
    return stub_->GetJob(&context, request, &job).error_code();
  };
  EXPECT_EQ(get("job-unknown"), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(get(""), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(get("a b"), grpc::StatusCode::INVALID_ARGUMENT);
  const auto list = [&](std::uint32_t limit, int state) {
    grpc::ClientContext context;
    v1::ListJobsRequest request;
    request.set_limit(limit);
    request.set_state(static_cast<v1::JobState>(state));
    v1::ListJobsResponse response;
    return stub_->ListJobs(&context, request, &response).error_code();
  };
  EXPECT_EQ(list(1000, 0), grpc::StatusCode::OK);
  EXPECT_EQ(list(1001, 0), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(list(1, 17), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerTest, TellsWhatItCanDo) {
  start();
  submitted();
  grpc::ClientContext context;
  v1::Capabilities capabilities;
  ASSERT_TRUE(stub_->GetCapabilities(&context, {}, &capabilities).ok());
  ASSERT_EQ(capabilities.models_size(), 1);
  EXPECT_EQ(capabilities.models(0).name(), "toy");
  EXPECT_EQ(capabilities.models(0).encodings(0), "merope");
  EXPECT_EQ(capabilities.limits().max_frames(), config_.limits.max_frames);
  EXPECT_EQ(capabilities.outputs_size(), 3);
  EXPECT_EQ(capabilities.camera_models(0), "pinhole");
  ASSERT_EQ(capabilities.workers_size(), 1);
  EXPECT_EQ(capabilities.workers(0).device(), "cpu");
  EXPECT_EQ(capabilities.api_version(), "merope.v1");
  EXPECT_FALSE(capabilities.server_version().empty());
}

TEST_F(ServerTest, KnowsAWorkerAsSoonAsItIsAnnounced) {
  config_.model_refresh = std::chrono::hours(1);
  start(false);
  const auto n_models = [&] {
    grpc::ClientContext context;
    v1::Capabilities capabilities;
    EXPECT_TRUE(stub_->GetCapabilities(&context, {}, &capabilities).ok());
    return capabilities.models_size();
  };
  EXPECT_EQ(n_models(), 0);
  announce();
  EXPECT_EQ(n_models(), 1);
}

TEST_F(ServerTest, AnswersHealthAndReflection) {
  start();
  EXPECT_EQ(health(channel_), "SERVING");
  grpc::Status status;
  const std::string services =
      call_raw(channel_, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*", status);
  EXPECT_NE(services.find("merope.v1.GenerationService"), std::string::npos) << status.error_message();
  EXPECT_TRUE(http_get(app_->admin_port(), "/readyz").starts_with("HTTP/1.1 200"));
  EXPECT_NE(http_get(app_->admin_port(), "/metrics").find("merope_server_requests_total"), std::string::npos);
}

TEST_F(ServerTest, TakesTenMegabytesAndRefusesMoreThanTheLimit) {
  start();
  // A picture with ten megabytes of comment.
  const std::string padded = std::string(media::testing::kPngSignature) + media::testing::png_ihdr(64, 32) +
                             media::testing::png_chunk("tEXt", "k" + std::string(1, '\0') + std::string(10 << 20, 'x')) +
                             media::testing::black_png(64, 32).substr(8 + 25);
  v1::GenerationRequest request = good_request();
  request.mutable_conditioning()->mutable_pictures()->add_files(padded);
  v1::SubmitResponse response;
  const grpc::Status status = submit(request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();

  request.mutable_conditioning()->set_mp4_clip(std::string((64 << 20) + 1, 'x'));
  EXPECT_EQ(submit(request, &response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ServerTest, AnswersHealthWhileTheQueueHangs) {
  config_.submit_threads = 1;
  config_.submit_backlog = 4;
  start();
  faults_.block();
  std::vector<std::future<grpc::StatusCode>> calls;
  const auto hang = [&] {
    calls.push_back(std::async(std::launch::async, [&] {
      grpc::ClientContext context;
      set_deadline(context, std::chrono::milliseconds(500));
      v1::SubmitResponse response;
      return stub_->Submit(&context, good_request(), &response).error_code();
    }));
  };
  hang();
  ASSERT_TRUE(faults_.wait_for_blocked_submits(1));
  for (int i = 0; i < 20; ++i) {
    hang();
  }
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(health(channel_), "SERVING");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(100));
  int late = 0;
  int refused = 0;
  for (auto& call : calls) {
    const grpc::StatusCode code = call.get();
    late += code == grpc::StatusCode::DEADLINE_EXCEEDED ? 1 : 0;
    refused += code == grpc::StatusCode::RESOURCE_EXHAUSTED ? 1 : 0;
  }
  EXPECT_EQ(late + refused, 21);
  EXPECT_LE(late, 6) << "one at work, four that wait, and the first may have made room for one";
  faults_.unblock();
  v1::SubmitResponse response;  // as soon as the calls that nobody waits for have made room
  EXPECT_TRUE(eventually([&] { return submit(good_request(), &response).ok(); }));
}

TEST_F(ServerTest, IsNotReadyWhileTheQueueIsAway) {
  config_.model_refresh = std::chrono::milliseconds(10);
  start();
  faults_.away = true;
  v1::SubmitResponse response;
  const grpc::Status status = submit(good_request(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_GT(details_of(status).retry.retry_delay().seconds(), 0);
  EXPECT_TRUE(eventually([&] { return http_get(app_->admin_port(), "/readyz").starts_with("HTTP/1.1 503"); }));
  EXPECT_TRUE(http_get(app_->admin_port(), "/healthz").starts_with("HTTP/1.1 200"));
  faults_.away = false;
  EXPECT_TRUE(eventually([&] { return http_get(app_->admin_port(), "/readyz").starts_with("HTTP/1.1 200"); }));
}

TEST_F(ServerTest, NamesAPortThatIsTaken) {
  start();
  ServerConfig second = config_;
  second.listen = app_->address();
  const auto app = ServerApp::start(second, second_queue_end());
  ASSERT_FALSE(app);
  EXPECT_NE(app.error().message.find(app_->address()), std::string::npos);

  second = config_;
  second.admin.port = app_->admin_port();
  const auto other = ServerApp::start(second, second_queue_end());
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find(std::to_string(app_->admin_port())), std::string::npos);
}

TEST_F(ServerTest, SurvivesBytesThatAreNoMessage) {
  start();
  grpc::Status status;
  call_raw(channel_, "/merope.v1.GenerationService/Submit", "\xff\xff\xff\xff\xff", status);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(health(channel_), "SERVING");
}

TEST_F(ServerTest, DrainsWithACallThatHangs) {
  config_.drain = std::chrono::milliseconds(300);
  start();
  faults_.block();
  auto call = std::async(std::launch::async, [&] {
    v1::SubmitResponse response;
    return submit(good_request(), &response);
  });
  ASSERT_TRUE(faults_.wait_for_blocked_submits(1));
  const auto before = std::chrono::steady_clock::now();
  app_->drain();
  EXPECT_LT(std::chrono::steady_clock::now() - before, config_.drain + std::chrono::seconds(1));
  EXPECT_FALSE(call.get().ok());
  EXPECT_TRUE(http_get(app_->admin_port(), "/readyz").starts_with("HTTP/1.1 503"));
  faults_.unblock();
}

}  // namespace
}  // namespace merope::server::testing
