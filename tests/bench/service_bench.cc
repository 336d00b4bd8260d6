// What the whole service adds to a job, as a client sees it: from its Submit call to a waiting worker having the job, and
// from a worker's put() to the client's stream having the fragment. gRPC server, private Redis on a Unix socket set up as in
// production, worker's end of the queue; only the video model is left out.
//
//   service_bench --benchmark_counters_tabular=true
#include <benchmark/benchmark.h>
#include <grpcpp/grpcpp.h>

#include <semaphore>
#include <string>
#include <thread>

#include "core/base/check.h"
#include "core/queue/queue_factory.h"
#include "merope/v1/generation.grpc.pb.h"
#include "proto/wire/job_codec.h"
#include "server/server_app.h"
#include "tests/bench/latencies.h"
#include "tests/support/proto/requests.h"
#include "tests/support/redis_server.h"

namespace merope::server {
namespace {

using bench::Clock;
using bench::Latencies;
using std::chrono::milliseconds;

class Service {
 public:
  Service() : queue_(queue::open_queue(redis.url()).value()), consumer(queue_->consumer("bench")) {
    MEROPE_CHECK(
        consumer->announce("toy", wire::encode_announcement({"bench", "cpu", "1", merope::testing::toy_model()}), "")
            .has_value(),
        "announce");
    ServerConfig config;
    config.listen = "127.0.0.1:0";
    config.admin.port = 0;
    app_ = ServerApp::start(config, {queue_->submitter(), queue_->events()}).value();
    stub = v1::GenerationService::NewStub(grpc::CreateChannel(app_->address(), grpc::InsecureChannelCredentials()));
  }

  std::string submit() {
    grpc::ClientContext context;
    v1::SubmitResponse response;
    v1::GenerationRequest request = merope::testing::good_request();
    request.clear_request_id();
    const grpc::Status status = stub->Submit(&context, request, &response);
    MEROPE_CHECK(status.ok(), "Submit");
    return response.job_id();
  }

  test::RedisServer redis;

 private:
  std::unique_ptr<queue::RedisQueue> queue_;
  std::unique_ptr<ServerApp> app_;

 public:
  std::unique_ptr<queue::JobConsumer> consumer;
  std::unique_ptr<v1::GenerationService::Stub> stub;
};

void submit_to_claimed(benchmark::State& state) {
  Service service;
  std::binary_semaphore arrived(0);
  std::binary_semaphore next(0);
  Clock::time_point claimed_at;
  std::jthread worker([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      const auto job = service.consumer->claim(milliseconds(30'000), stop).value();
      if (!job) {
        continue;
      }
      claimed_at = Clock::now();
      const auto answer =
          service.consumer->finish(*job, queue::JobState::kSucceeded, 1, wire::encode_finished({}), 0, "").value();
      MEROPE_CHECK(answer == queue::LeaseAnswer::kOk, "finish");
      arrived.release();
      next.acquire();
    }
  });
  Latencies latencies(state);
  for ([[maybe_unused]] auto iteration : state) {
    // The worker is idle and waits.
    while (service.redis.command("CLIENT LIST").find("cmd=xread") == std::string::npos) {
    }
    const auto begin = Clock::now();
    service.submit();
    arrived.acquire();
    latencies.add(begin, claimed_at);
    next.release();
  }
  worker.request_stop();
}

void put_to_received(benchmark::State& state) {
  Service service;
  const std::string bytes(static_cast<std::size_t>(state.range(0)), 'b');
  const std::string entry = wire::encode_fragment(bytes, 0, 0, 1).front();  // small enough for one part
  const std::string id = service.submit();
  const queue::ClaimedJob job = service.consumer->claim(milliseconds(1'000), {}).value().value();
  std::binary_semaphore arrived(0);
  Clock::time_point received_at;
  grpc::ClientContext context;
  v1::WatchRequest request;
  request.set_job_id(id);
  const auto reader = service.stub->Watch(&context, request);
  std::jthread receiver([&] {
    for (v1::JobEvent event; reader->Read(&event);) {
      if (event.has_fragment()) {
        received_at = Clock::now();
        arrived.release();
      }
    }
  });
  Latencies latencies(state);
  std::uint64_t seq = 0;
  for ([[maybe_unused]] auto iteration : state) {
    const auto begin = Clock::now();
    MEROPE_CHECK(service.consumer->put(job, ++seq, entry).value() == queue::LeaseAnswer::kOk, "put");
    arrived.acquire();
    latencies.add(begin, received_at);
  }
  context.TryCancel();
}

BENCHMARK(submit_to_claimed)->Name("submit_to_claimed")->UseManualTime()->Iterations(500)->Unit(benchmark::kMicrosecond);
BENCHMARK(put_to_received)
    ->Name("put_to_received")
    ->ArgName("bytes")
    ->Arg(2'048)
    ->Arg(65'536)
    ->Arg(200'000)
    ->UseManualTime()
    ->Iterations(500)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace merope::server

BENCHMARK_MAIN();
