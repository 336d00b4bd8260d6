#include "core/queue/memory_state.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/queue/queue_errors.h"

namespace merope::queue {

Result<SubmitOutcome> MemoryState::submit(const NewJob& job, const std::string& new_job_id, std::int64_t now) {
  if (const auto known = job_of_request_.find(job.request_id); known != job_of_request_.end()) {
    if (const Job* first = find(known->second, now)) {
      if (first->submitted.digest != job.digest) {
        return request_reused(job.request_id);
      }
      return SubmitOutcome{first->record.job_id, true};
    }
  }
  if (queued_.size() >= limits_.max_queued) {
    return queue_full(limits_.max_queued);
  }
  Job& added = jobs_[new_job_id];
  added.submitted = job;
  added.record.job_id = new_job_id;
  added.record.request_id = job.request_id;
  added.record.priority = job.priority;
  added.record.submitted_ms = now;
  job_of_request_[job.request_id] = new_job_id;
  enqueue(added, false);
  added.submit_order = added.place.order;
  return SubmitOutcome{new_job_id, false};
}

Result<JobRecord> MemoryState::cancel(const std::string& job_id, std::int64_t now) {
  if (find(job_id, now) == nullptr) {
    return unknown_job(job_id);
  }
  Job& job = jobs_.at(job_id);
  if (!is_terminal(job.record.state)) {
    job.record.cancel_requested = true;
    if (job.record.state == JobState::kQueued) {
      end_cancelled(job, now);
    }
  }
  return job.record;
}

Result<JobRecord> MemoryState::get(const std::string& job_id, std::int64_t now) const {
  const Job* job = find(job_id, now);
  if (job == nullptr) {
    return unknown_job(job_id);
  }
  return job->record;
}

std::vector<JobRecord> MemoryState::list(std::optional<JobState> state, std::size_t limit, std::int64_t now) const {
  std::vector<const Job*> found;
  for (const auto& [id, job] : jobs_) {
    if (find(id, now) != nullptr && (!state || job.record.state == *state)) {
      found.push_back(&job);
    }
  }
  std::sort(found.begin(), found.end(), [](const Job* a, const Job* b) { return a->submit_order > b->submit_order; });
  found.resize(std::min(found.size(), limit));
  std::vector<JobRecord> records;
  for (const Job* job : found) {
    records.push_back(job->record);
  }
  return records;
}

std::uint32_t MemoryState::place(const std::string& job_id) const {
  const auto job = jobs_.find(job_id);
  if (job == jobs_.end() || job->second.record.state != JobState::kQueued) {
    return 0;
  }
  return static_cast<std::uint32_t>(std::distance(queued_.begin(), queued_.find(job->second.place)));
}

QueueStats MemoryState::stats(std::int64_t now) const {
  QueueStats stats;
  for (const auto& [id, job] : jobs_) {
    if (job.record.state == JobState::kQueued) {
      ++stats.queued;
      stats.oldest_queued = std::max(stats.oldest_queued, std::chrono::milliseconds(now - job.record.submitted_ms));
    } else if (job.record.state == JobState::kRunning) {
      ++stats.running;
    }
  }
  return stats;
}

std::vector<WorkerRecord> MemoryState::workers(std::int64_t now) const {
  std::vector<WorkerRecord> alive;
  for (const auto& [name, worker] : workers_) {
    if (worker.second > now) {
      alive.push_back(worker.first);
    }
  }
  return alive;
}

std::vector<std::string> MemoryState::known_models() const {
  std::vector<std::string> announcements;
  for (const auto& [model, announcement] : models_) {
    announcements.push_back(announcement);
  }
  return announcements;
}

std::size_t MemoryState::reconcile(std::int64_t now) {
  std::size_t changed = return_lost(now);
  const std::map<Place, std::string> waiting = queued_;
  for (const auto& [place, id] : waiting) {
    changed += expire_wait(jobs_.at(id), now) ? 1 : 0;
  }
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    if (find(job->first, now) != nullptr) {
      ++job;
      continue;
    }
    // The request id may belong to a newer job by now.
    const auto request = job_of_request_.find(job->second.record.request_id);
    if (request != job_of_request_.end() && request->second == job->first) {
      job_of_request_.erase(request);
    }
    job = jobs_.erase(job);
  }
  return changed;
}

std::optional<ClaimedJob> MemoryState::claim(const std::string& worker, std::int64_t now) {
  return_lost(now);
  while (!queued_.empty()) {
    Job& job = jobs_.at(queued_.begin()->second);
    if (expire_wait(job, now)) {
      continue;
    }
    queued_.erase(queued_.begin());
    JobRecord& record = job.record;
    record.state = JobState::kRunning;
    record.epoch += 1;
    record.attempts += 1;
    record.worker = worker;
    record.started_ms = now;
    record.last_seq = 0;
    job.lease_until = now + limits_.lease.count();
    job.entries.clear();
    job.output_bytes = 0;
    woken_.push_back(record.job_id);
    ClaimedJob claimed;
    claimed.job_id = record.job_id;
    claimed.epoch = record.epoch;
    claimed.attempt = record.attempts;
    claimed.spec = job.submitted.spec;
    claimed.input = job.submitted.input;
    claimed.lease = limits_.lease;
    claimed.max_run_time = job.submitted.max_run_time;
    claimed.waited = std::chrono::milliseconds(now - record.submitted_ms);
    return claimed;
  }
  return std::nullopt;
}

Result<LeaseAnswer> MemoryState::put(const ClaimedJob& claimed, std::uint64_t seq, std::string_view bytes) {
  if (bytes.size() > kMaxEntryBytes) {
    return entry_too_long(claimed.job_id, bytes.size());
  }
  Job* job = owned(claimed);
  if (job == nullptr) {
    return LeaseAnswer::kFenced;
  }
  if (job->record.cancel_requested) {
    return LeaseAnswer::kCancelled;
  }
  if (seq <= job->record.last_seq) {
    return LeaseAnswer::kOk;
  }
  if (seq != job->record.last_seq + 1) {
    return hole_in_stream(claimed.job_id, seq, job->record.last_seq);
  }
  if (job->output_bytes + bytes.size() > limits_.max_output_bytes) {
    return output_too_long(claimed.job_id, limits_.max_output_bytes);
  }
  append(*job, seq, bytes);
  woken_.push_back(claimed.job_id);
  return LeaseAnswer::kOk;
}

LeaseAnswer MemoryState::beat(const ClaimedJob& claimed, std::int64_t now) {
  Job* job = owned(claimed);
  if (job == nullptr) {
    return LeaseAnswer::kFenced;
  }
  job->lease_until = now + limits_.lease.count();
  return job->record.cancel_requested ? LeaseAnswer::kCancelled : LeaseAnswer::kOk;
}

Result<LeaseAnswer> MemoryState::finish(const ClaimedJob& claimed,
                                        JobState state,
                                        std::uint64_t seq,
                                        std::string_view bytes,
                                        std::int32_t code,
                                        std::string_view message,
                                        std::int64_t now) {
  MEROPE_CHECK(is_terminal(state), "finish() with a state that is not an end");
  if (bytes.size() > kMaxEntryBytes) {
    return entry_too_long(claimed.job_id, bytes.size());
  }
  Job* job = owned(claimed);
  if (job == nullptr) {
    const Job* ended = find(claimed.job_id, now);
    if (ended == nullptr || ended->record.epoch != claimed.epoch || !is_terminal(ended->record.state)) {
      return LeaseAnswer::kFenced;
    }
    if (ended->record.state == state) {
      return LeaseAnswer::kOk;
    }
    return ended->record.state == JobState::kCancelled ? LeaseAnswer::kCancelled : LeaseAnswer::kFenced;
  }
  if (job->record.cancel_requested && state != JobState::kCancelled) {
    end_cancelled(*job, now);
    return LeaseAnswer::kCancelled;
  }
  if (seq != job->record.last_seq + 1) {
    return hole_in_stream(claimed.job_id, seq, job->record.last_seq);
  }
  append(*job, seq, bytes);
  end(*job, state, code, message, now);
  return LeaseAnswer::kOk;
}

LeaseAnswer MemoryState::release(const ClaimedJob& claimed, std::int64_t now) {
  Job* job = owned(claimed);
  if (job == nullptr) {
    return LeaseAnswer::kFenced;
  }
  if (job->record.cancel_requested) {
    end_cancelled(*job, now);
    return LeaseAnswer::kCancelled;
  }
  job->record.attempts -= 1;
  enqueue(*job, true);
  woken_.push_back(claimed.job_id);
  return LeaseAnswer::kOk;
}

void MemoryState::announce(const std::string& worker,
                           const std::string& model,
                           std::string_view announcement,
                           const std::string& current_job,
                           std::int64_t now) {
  workers_[worker] = {{worker, std::string(announcement), current_job}, now + kWorkerTtlMs};
  models_[model] = announcement;
}

Result<EventBatch> MemoryState::read(const std::string& job_id,
                                     const Cursor& after,
                                     std::size_t max_entries,
                                     std::int64_t now) const {
  const Job* job = find(job_id, now);
  if (job == nullptr) {
    return unknown_job(job_id);
  }
  EventBatch batch;
  batch.record = job->record;
  if (job->output_expires != 0 && now >= job->output_expires) {
    return batch;
  }
  for (const StreamEntry& entry : job->entries) {
    if (entry.cursor > after && batch.entries.size() < max_entries) {
      batch.entries.push_back(entry);
    }
  }
  return batch;
}

std::optional<std::int64_t> MemoryState::first_lease_end() const {
  std::optional<std::int64_t> first;
  for (const auto& [id, job] : jobs_) {
    if (job.record.state == JobState::kRunning && (!first || job.lease_until < *first)) {
      first = job.lease_until;
    }
  }
  return first;
}

const MemoryState::Job* MemoryState::find(const std::string& job_id, std::int64_t now) const {
  const auto job = jobs_.find(job_id);
  if (job == jobs_.end() || (job->second.expires != 0 && now >= job->second.expires)) {
    return nullptr;
  }
  return &job->second;
}

MemoryState::Job* MemoryState::owned(const ClaimedJob& claimed) {
  const auto job = jobs_.find(claimed.job_id);
  if (job == jobs_.end() || job->second.record.state != JobState::kRunning || job->second.record.epoch != claimed.epoch) {
    return nullptr;
  }
  return &job->second;
}

void MemoryState::enqueue(Job& job, bool came_back) {
  job.record.state = JobState::kQueued;
  job.record.worker.clear();
  job.place = {2 * static_cast<std::uint32_t>(job.record.priority) + (came_back ? 0U : 1U), ++next_order_};
  queued_.emplace(job.place, job.record.job_id);
}

void MemoryState::end(Job& job, JobState state, std::int32_t code, std::string_view message, std::int64_t now) {
  if (job.record.state == JobState::kQueued) {
    queued_.erase(job.place);
  }
  job.record.state = state;
  job.record.code = code;
  job.record.message = message;
  job.record.ended_ms = now;
  job.submitted.spec.clear();
  job.submitted.input.clear();
  job.output_expires = now + limits_.keep_output.count();
  job.expires = now + limits_.keep_job.count();
  woken_.push_back(job.record.job_id);
}

void MemoryState::end_cancelled(Job& job, std::int64_t now) {
  end(job, JobState::kCancelled, static_cast<std::int32_t>(ErrorCode::kCancelled), kCancelledMessage, now);
}

std::size_t MemoryState::return_lost(std::int64_t now) {
  std::vector<std::pair<std::int64_t, std::string>> lost;
  for (const auto& [id, job] : jobs_) {
    if (job.record.state == JobState::kRunning && job.lease_until <= now) {
      lost.emplace_back(job.lease_until, id);
    }
  }
  std::sort(lost.begin(), lost.end());
  for (const auto& [lease_until, id] : lost) {
    Job& job = jobs_.at(id);
    if (job.record.cancel_requested) {
      end_cancelled(job, now);
    } else if (job.record.attempts >= limits_.max_attempts) {
      dead_letters_.push_back(id);
      const std::string message = poison_message(job.record.attempts, job.record.worker);
      end(job, JobState::kFailed, static_cast<std::int32_t>(ErrorCode::kInternal), message, now);
    } else {
      enqueue(job, true);
      woken_.push_back(id);
    }
  }
  return lost.size();
}

bool MemoryState::expire_wait(Job& job, std::int64_t now) {
  const std::int64_t limit = job.submitted.max_queue_wait.count();
  if (limit == 0 || job.record.epoch != 0 || now < job.record.submitted_ms + limit) {
    return false;
  }
  end(job, JobState::kExpired, static_cast<std::int32_t>(ErrorCode::kDeadlineExceeded), expired_message(limit), now);
  return true;
}

void MemoryState::append(Job& job, std::uint64_t seq, std::string_view bytes) {
  job.entries.push_back({{job.record.epoch, seq}, std::string(bytes)});
  job.output_bytes += bytes.size();
  job.record.last_seq = seq;
}

}  // namespace merope::queue
