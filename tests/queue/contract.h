// The contract of core/queue/job_queue.h, once for every implementation: a test program instantiates it with its WorldMaker.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/queue/world.h"

namespace merope::queue {

class QueueContract : public testing::TestWithParam<WorldMaker> {
 protected:
  QueueContract() { make(small_limits()); }

  void make(const QueueLimits& limits) {
    limits_ = limits;
    events.reset();
    other.reset();
    worker.reset();
    server.reset();
    world = GetParam()(limits);
    server = world->submitter();
    worker = world->consumer("w1");
    other = world->consumer("w2");
    events = world->events();
  }

  std::string submit(const NewJob& job) { return server->submit(job).value().job_id; }
  std::string submit(const std::string& request_id, Priority priority = Priority::kNormal) {
    return submit(new_job(request_id, priority));
  }
  std::optional<ClaimedJob> claim(JobConsumer& by) { return by.claim(std::chrono::milliseconds(0), {}).value(); }
  std::optional<ClaimedJob> claim() { return claim(*worker); }
  std::string claimed_id() {
    const auto job = claim();
    return job ? job->job_id : "nothing";
  }
  JobRecord record(const std::string& job_id) { return server->get(job_id).value(); }
  // The entries as "epoch-seq:bytes" with spaces between.
  std::string stream(const std::string& job_id, const Cursor& after = {}, std::size_t max_entries = 100) {
    const Result<EventBatch> batch = events->read(job_id, after, max_entries);
    if (!batch) {
      return batch.error().message;
    }
    std::string text;
    for (const StreamEntry& entry : batch->entries) {
      text += (text.empty() ? "" : " ") + std::to_string(entry.cursor.epoch) + "-" + std::to_string(entry.cursor.seq) + ":" +
              entry.bytes;
    }
    return text;
  }
  void lose_lease() { world->advance(limits_.lease); }

  std::unique_ptr<World> world;
  std::unique_ptr<JobSubmitter> server;
  std::unique_ptr<JobConsumer> worker;
  std::unique_ptr<JobConsumer> other;
  std::unique_ptr<JobEventSource> events;

 private:
  QueueLimits limits_;
};

}  // namespace merope::queue
