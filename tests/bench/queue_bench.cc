// What the queue adds to a job: from submit() to a waiting worker having the job, and from put() to a waiting server having
// the bytes. Over a private Redis on a Unix socket, set up as in production (a disk write per change: that is most of the
// time).
//
//   queue_bench --benchmark_counters_tabular=true
#include <benchmark/benchmark.h>

#include <chrono>
#include <semaphore>
#include <string>
#include <thread>

#include "core/base/check.h"
#include "core/base/ids.h"
#include "core/queue/queue_factory.h"
#include "tests/bench/latencies.h"
#include "tests/support/redis_server.h"

namespace merope::queue {
namespace {

using bench::Clock;
using bench::Latencies;
using std::chrono::milliseconds;

constexpr milliseconds kLong{30'000};

NewJob new_job() {
  NewJob job;
  job.request_id = random_id("bench");
  job.digest = "-";
  job.spec = std::string(2'048, 's');
  return job;
}

void submit_to_claimed(benchmark::State& state) {
  test::RedisServer redis;
  const auto queue = open_queue(redis.url()).value();
  const auto server = queue->submitter();
  std::binary_semaphore arrived(0);
  std::binary_semaphore next(0);
  std::string claimed_id;
  Clock::time_point claimed_at;
  std::jthread worker([&](std::stop_token stop) {
    const auto consumer = queue->consumer("bench");
    while (!stop.stop_requested()) {
      const auto job = consumer->claim(kLong, stop).value();
      if (!job) {
        continue;
      }
      claimed_at = Clock::now();
      claimed_id = job->job_id;
      MEROPE_CHECK(consumer->finish(*job, JobState::kSucceeded, 1, "", 0, "").value() == LeaseAnswer::kOk, "finish");
      arrived.release();
      next.acquire();
    }
  });
  Latencies latencies(state);
  for ([[maybe_unused]] auto iteration : state) {
    // The worker is idle and waits.
    while (redis.command("CLIENT LIST").find("cmd=xread") == std::string::npos) {
    }
    const auto begin = Clock::now();
    const SubmitOutcome outcome = server->submit(new_job()).value();
    arrived.acquire();
    latencies.add(begin, claimed_at);
    MEROPE_CHECK(claimed_id == outcome.job_id, "the claimed job is the submitted one");
    next.release();
  }
  worker.request_stop();
}

void put_to_received(benchmark::State& state) {
  test::RedisServer redis;
  const auto queue = open_queue(redis.url()).value();
  const auto server = queue->submitter();
  const auto consumer = queue->consumer("bench");
  const std::string bytes(static_cast<std::size_t>(state.range(0)), 'b');
  const std::string id = server->submit(new_job()).value().job_id;
  ClaimedJob job = consumer->claim(milliseconds(0), {}).value().value();
  std::binary_semaphore ready(0);
  std::binary_semaphore arrived(0);
  Clock::time_point received_at;
  const auto events = queue->events();
  std::jthread reader([&](std::stop_token stop) {
    static_cast<void>(events->wait_for_wakeups(milliseconds(1)));
    ready.release();
    Cursor cursor;
    while (!stop.stop_requested()) {
      // As the server does: it looks again after a while, should a wake-up get lost.
      static_cast<void>(events->wait_for_wakeups(milliseconds(5'000)));
      const EventBatch batch = events->read(id, cursor, 4).value();
      for (const StreamEntry& entry : batch.entries) {
        received_at = Clock::now();
        MEROPE_CHECK(entry.bytes == bytes, "what was put is what was received");
        cursor = entry.cursor;
        arrived.release();
      }
    }
  });
  ready.acquire();
  Latencies latencies(state);
  std::uint64_t seq = 0;
  std::size_t written = 0;
  for ([[maybe_unused]] auto iteration : state) {
    if (written + bytes.size() > QueueLimits().max_output_bytes) {
      state.SkipWithError("the stream is full; ask for fewer iterations");
      break;
    }
    const auto begin = Clock::now();
    MEROPE_CHECK(consumer->put(job, ++seq, bytes).value() == LeaseAnswer::kOk, "put");
    arrived.acquire();
    latencies.add(begin, received_at);
    written += bytes.size();
  }
  reader.request_stop();
  events->interrupt();
}

BENCHMARK(submit_to_claimed)->Name("submit_to_claimed")->UseManualTime()->Iterations(1'000)->Unit(benchmark::kMicrosecond);
BENCHMARK(put_to_received)
    ->Name("put_to_received")
    ->ArgName("bytes")
    ->Arg(2'048)
    ->Arg(65'536)
    ->Arg(kMaxEntryBytes)
    ->UseManualTime()
    ->Iterations(1'000)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace merope::queue

BENCHMARK_MAIN();
