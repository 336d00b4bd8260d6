// What the queue knows about models, workers and its own depth, as of a moment ago.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/queue/job_queue.h"
#include "proto/spec/generation_spec.h"
#include "server/server_metrics.h"

namespace merope::server {

struct DirectoryWorker {
  std::string name;
  std::string device;
  std::string version;
  std::string model;
  std::string current_job;
};

// Immutable.
struct DirectorySnapshot {
  std::vector<ModelDescription> models;  // by name; of workers that live and of those that were here before
  std::vector<DirectoryWorker> workers;
  queue::QueueStats stats;
  Clock::TimePoint read_at;
};

// Internally locked. refresh() waits for the queue; the rest never does.
class ModelDirectory {
 public:
  // Both must outlive the object.
  ModelDirectory(queue::JobSubmitter& submitter, const Clock& clock, ServerMetrics& metrics)
      : submitter_(submitter), clock_(clock), metrics_(metrics) {}

  // Reads everything again. The error is that of the queue; announcements that can not be read are left out with a warning.
  Status refresh();
  // The newest snapshot if it is younger than `max_age` and knows a model, else a new one. Waits for the queue then. So a
  // worker that has just come up is not kept from its first client.
  Result<std::shared_ptr<const DirectorySnapshot>> fresh(std::chrono::milliseconds max_age);
  // Null before the first refresh that succeeded.
  std::shared_ptr<const DirectorySnapshot> newest() const;
  // Empty while the queue answers, else why not. Notices a queue that hangs: `max_age` without an answer is a reason too.
  std::string trouble(std::chrono::milliseconds max_age) const;

 private:
  Status read(DirectorySnapshot& snapshot);

  queue::JobSubmitter& submitter_;
  const Clock& clock_;
  ServerMetrics& metrics_;
  mutable std::mutex mutex_;
  std::shared_ptr<const DirectorySnapshot> newest_;
  std::string last_error_ = "the queue was not asked yet";
};

}  // namespace merope::server
