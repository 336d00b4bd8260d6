// A whole server in this process: real gRPC on a free port, the queue in memory, and faults between the two.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "core/queue/memory_queue.h"
#include "google/rpc/status.pb.h"
#include "merope/v1/generation.grpc.pb.h"
#include "proto/wire/job_codec.h"
#include "server/server_app.h"
#include "tests/support/proto/requests.h"

namespace merope::server::testing {

// What a test does to the queue while the server uses it.
struct QueueFaults {
  std::atomic<int> failed_reads = 0;        // of streams, while away
  std::atomic<bool> away = false;           // every call answers kUnavailable at once
  std::atomic<std::uint64_t> hide_seq = 0;  // entries with this seq are not found
  std::atomic<std::size_t> bytes_read = 0;  // of all entries that the server fetched

  // While blocked, calls of the submitter wait.
  void block() { set_blocked(true); }
  void unblock() { set_blocked(false); }
  void wait_while_blocked(bool is_submit) {
    std::unique_lock lock(mutex);
    submits_waiting += is_submit ? 1 : 0;
    changed.notify_all();
    changed.wait(lock, [&] { return !blocked; });
    submits_waiting -= is_submit ? 1 : 0;
  }
  // Waits until so many submissions wait.
  bool wait_for_blocked_submits(int n) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20), [&] { return submits_waiting >= n; });
  }

 private:
  void set_blocked(bool value) {
    const std::lock_guard lock(mutex);
    blocked = value;
    changed.notify_all();
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool blocked = false;
  int submits_waiting = 0;
};

class FaultySubmitter final : public queue::JobSubmitter {
 public:
  FaultySubmitter(std::unique_ptr<queue::JobSubmitter> inner, QueueFaults& faults)
      : inner_(std::move(inner)), faults_(faults) {}

  Result<queue::SubmitOutcome> submit(const queue::NewJob& job) override {
    return guarded<queue::SubmitOutcome>([&] { return inner_->submit(job); }, true);
  }
  Result<queue::JobRecord> cancel(const std::string& id) override {
    return guarded<queue::JobRecord>([&] { return inner_->cancel(id); });
  }
  Result<queue::JobRecord> get(const std::string& id) override {
    return guarded<queue::JobRecord>([&] { return inner_->get(id); });
  }
  Result<std::vector<queue::JobRecord>> list(std::optional<queue::JobState> state, std::size_t limit) override {
    return guarded<std::vector<queue::JobRecord>>([&] { return inner_->list(state, limit); });
  }
  Result<std::uint32_t> place(const std::string& id) override {
    return guarded<std::uint32_t>([&] { return inner_->place(id); });
  }
  Result<queue::QueueStats> stats() override {
    return guarded<queue::QueueStats>([&] { return inner_->stats(); });
  }
  Result<std::vector<queue::WorkerRecord>> workers() override {
    return guarded<std::vector<queue::WorkerRecord>>([&] { return inner_->workers(); });
  }
  Result<std::vector<std::string>> known_models() override {
    return guarded<std::vector<std::string>>([&] { return inner_->known_models(); });
  }
  Result<std::size_t> reconcile() override {
    return guarded<std::size_t>([&] { return inner_->reconcile(); });
  }

 private:
  template <typename T, typename Call>
  Result<T> guarded(Call call, bool is_submit = false) {
    faults_.wait_while_blocked(is_submit);
    if (faults_.away) {
      return unavailable("Redis can not be reached: test");
    }
    return call();
  }

  std::unique_ptr<queue::JobSubmitter> inner_;
  QueueFaults& faults_;
};

class FaultyEvents final : public queue::JobEventSource {
 public:
  FaultyEvents(std::unique_ptr<queue::JobEventSource> inner, QueueFaults& faults)
      : inner_(std::move(inner)), faults_(faults) {}

  Result<queue::EventBatch> read(const std::string& id, const queue::Cursor& after, std::size_t max_entries) override {
    if (faults_.away) {
      ++faults_.failed_reads;
      return unavailable("Redis can not be reached: test");
    }
    auto batch = inner_->read(id, after, max_entries);
    if (batch) {
      std::erase_if(batch->entries, [&](const auto& entry) { return entry.cursor.seq == faults_.hide_seq; });
      for (const auto& entry : batch->entries) {
        faults_.bytes_read += entry.bytes.size();
      }
    }
    return batch;
  }
  Result<std::vector<std::string>> wait_for_wakeups(std::chrono::milliseconds timeout) override {
    return inner_->wait_for_wakeups(timeout);
  }
  void interrupt() override { inner_->interrupt(); }

 private:
  std::unique_ptr<queue::JobEventSource> inner_;
  QueueFaults& faults_;
};

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    config_.listen = "127.0.0.1:0";
    config_.admin.port = 0;
    config_.drain = std::chrono::milliseconds(2000);
  }
  ~ServerTest() override { faults_.unblock(); }

  // A worker has announced the toy model, unless the test wants none.
  void start(bool with_model = true) {
    queue::MemoryQueue::Options options;
    options.limits = config_.queue;
    options.now_ms = [this] { return now_ms_.load(); };
    queue_ = std::make_unique<queue::MemoryQueue>(options);
    worker_ = queue_->consumer("worker-1");
    if (with_model) {
      announce();
    }
    auto app = ServerApp::start(config_, second_queue_end());
    ASSERT_TRUE(app) << app.error().message;
    app_ = *std::move(app);
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(app_->address(), grpc::InsecureChannelCredentials(), arguments);
    stub_ = v1::GenerationService::NewStub(channel_);
  }
  ServerQueue second_queue_end() {
    return {std::make_unique<FaultySubmitter>(queue_->submitter(), faults_),
            std::make_unique<FaultyEvents>(queue_->events(), faults_)};
  }
  void announce() {
    ASSERT_TRUE(
        worker_->announce("toy", wire::encode_announcement({"worker-1", "cpu", "1", merope::testing::toy_model()}), ""));
  }

  static void set_deadline(grpc::ClientContext& context, std::chrono::milliseconds time = std::chrono::seconds(20)) {
    context.set_deadline(std::chrono::system_clock::now() + time);
  }
  grpc::Status submit(const v1::GenerationRequest& request, v1::SubmitResponse* response) {
    grpc::ClientContext context;
    set_deadline(context);
    return stub_->Submit(&context, request, response);
  }
  std::string submitted() {
    v1::SubmitResponse response;
    const grpc::Status status = submit(merope::testing::good_request(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.job_id();
  }
  queue::ClaimedJob claimed() {
    const auto job = worker_->claim(std::chrono::seconds(20), {});
    EXPECT_TRUE(job && *job);
    return **job;
  }
  void put(const queue::ClaimedJob& job, std::uint64_t seq, const std::string& bytes) {
    const auto answer = worker_->put(job, seq, bytes);
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_EQ(*answer, queue::LeaseAnswer::kOk);
  }
  void finish(const queue::ClaimedJob& job, std::uint64_t seq) {
    const auto answer = worker_->finish(job, queue::JobState::kSucceeded, seq, wire::encode_finished({}), 0, "");
    ASSERT_TRUE(answer);
    ASSERT_EQ(*answer, queue::LeaseAnswer::kOk);
  }

  // A stream being read, with its call.
  struct Stream {
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::ClientReader<v1::JobEvent>> reader;

    std::optional<v1::JobEvent> next() {
      v1::JobEvent event;
      return reader->Read(&event) ? std::optional(event) : std::nullopt;
    }
    // Reads to the end.
    std::pair<std::vector<v1::JobEvent>, grpc::Status> rest() {
      std::vector<v1::JobEvent> events;
      while (auto event = next()) {
        events.push_back(*std::move(event));
      }
      return {std::move(events), reader->Finish()};
    }
  };
  Stream watch(const std::string& job_id, queue::Cursor after = {}) {
    v1::WatchRequest request;
    request.set_job_id(job_id);
    request.mutable_after()->set_epoch(after.epoch);
    request.mutable_after()->set_seq(after.seq);
    Stream stream{std::make_unique<grpc::ClientContext>(), nullptr};
    set_deadline(*stream.context);
    stream.reader = stub_->Watch(stream.context.get(), request);
    return stream;
  }
  Stream generate(const v1::GenerationRequest& request) {
    Stream stream{std::make_unique<grpc::ClientContext>(), nullptr};
    set_deadline(*stream.context);
    stream.reader = stub_->Generate(stream.context.get(), request);
    return stream;
  }

  // Waits for what happens on other threads.
  template <typename Condition>
  static ::testing::AssertionResult eventually(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) {
        return ::testing::AssertionFailure() << "it did not happen within 20 s";
      }
      never.wait_for(lock, std::chrono::milliseconds(2));
    }
    return ::testing::AssertionSuccess();
  }
  // The value of a metric without labels.
  double metric(const std::string& name) const {
    const std::string text = app_->metrics().render();
    const auto at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }

  ServerConfig config_;
  QueueFaults faults_;
  std::atomic<std::int64_t> now_ms_ = 1'700'000'000'000;
  std::unique_ptr<queue::MemoryQueue> queue_;
  std::unique_ptr<queue::JobConsumer> worker_;
  std::unique_ptr<ServerApp> app_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::GenerationService::Stub> stub_;
};

// The google.rpc details of a status; empty messages when there are none.
struct Details {
  google::rpc::BadRequest bad_request;
  google::rpc::ErrorInfo info;
  google::rpc::RetryInfo retry;
};

inline Details details_of(const grpc::Status& status) {
  Details details;
  google::rpc::Status rich;
  EXPECT_TRUE(rich.ParseFromString(status.error_details()));
  for (const auto& detail : rich.details()) {
    detail.UnpackTo(&details.bad_request) || detail.UnpackTo(&details.info) || detail.UnpackTo(&details.retry);
  }
  return details;
}

}  // namespace merope::server::testing
