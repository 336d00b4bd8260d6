#include "server/model_directory.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/log.h"
#include "proto/wire/job_codec.h"

namespace merope::server {

Status ModelDirectory::read(DirectorySnapshot& snapshot) {
  MEROPE_ASSIGN_OR_RETURN(const std::vector<std::string> announcements, submitter_.known_models());
  for (const std::string& announcement : announcements) {
    Result<wire::WorkerDescription> worker = wire::parse_announcement(announcement);
    if (!worker) {
      log::warn("announcement of a model was left out", {{"reason", worker.error().message}});
      continue;
    }
    snapshot.models.push_back(std::move(worker->model));
  }
  std::sort(snapshot.models.begin(), snapshot.models.end(), [](const auto& a, const auto& b) { return a.name < b.name; });

  MEROPE_ASSIGN_OR_RETURN(const std::vector<queue::WorkerRecord> records, submitter_.workers());
  for (const queue::WorkerRecord& record : records) {
    if (const Result<wire::WorkerDescription> worker = wire::parse_announcement(record.announcement)) {
      snapshot.workers.push_back({record.name, worker->device, worker->version, worker->model.name, record.current_job});
    }
  }
  MEROPE_ASSIGN_OR_RETURN(snapshot.stats, submitter_.stats());
  return {};
}

Status ModelDirectory::refresh() {
  auto snapshot = std::make_shared<DirectorySnapshot>();
  const Status status = read(*snapshot);
  metrics_.queue_up.set(status ? 1 : 0);
  if (!status) {
    const std::lock_guard lock(mutex_);
    if (last_error_.empty()) {
      log::warn("queue became unreachable", {{"reason", status.error().message}});
    }
    last_error_ = status.error().message;
    return status;
  }
  snapshot->read_at = clock_.now();
  metrics_.queue_depth.set(static_cast<double>(snapshot->stats.queued));
  metrics_.queue_running.set(static_cast<double>(snapshot->stats.running));
  metrics_.queue_oldest_seconds.set(std::chrono::duration<double>(snapshot->stats.oldest_queued).count());
  metrics_.workers.set(static_cast<double>(snapshot->workers.size()));

  const std::lock_guard lock(mutex_);
  if (!last_error_.empty() && newest_ != nullptr) {
    log::info("queue is reachable again");
  }
  last_error_.clear();
  newest_ = std::move(snapshot);
  return {};
}

Result<std::shared_ptr<const DirectorySnapshot>> ModelDirectory::fresh(std::chrono::milliseconds max_age) {
  {
    const std::lock_guard lock(mutex_);
    if (newest_ != nullptr && !newest_->models.empty() && last_error_.empty() &&
        clock_.now() - newest_->read_at <= max_age) {
      return newest_;
    }
  }
  MEROPE_RETURN_IF_ERROR(refresh());
  return newest();
}

std::shared_ptr<const DirectorySnapshot> ModelDirectory::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

std::string ModelDirectory::trouble(std::chrono::milliseconds max_age) const {
  const std::lock_guard lock(mutex_);
  if (!last_error_.empty()) {
    return last_error_;
  }
  if (const auto age = clock_.now() - newest_->read_at; age > max_age) {
    return fmt::format("the queue has not answered for {} s", std::chrono::duration_cast<std::chrono::seconds>(age).count());
  }
  return "";
}

}  // namespace merope::server
