#include "tests/queue/random_walk.h"

#include <sstream>

namespace merope::queue {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kWorkers = 3;
constexpr std::uint64_t kRequests = 14;

std::string text(LeaseAnswer answer) {
  switch (answer) {
    case LeaseAnswer::kOk: return "ok";
    case LeaseAnswer::kFenced: return "fenced";
    case LeaseAnswer::kCancelled: return "cancelled";
  }
  return "?";
}

std::string text(const Result<LeaseAnswer>& answer) {
  return answer ? text(*answer) : std::string(to_string(answer.error().code)) + ": " + answer.error().message;
}

std::string text(const JobRecord& job) {
  std::ostringstream out;
  out << job.job_id << ' ' << job.request_id << ' ' << to_string(job.state) << ' ' << to_string(job.priority)
      << " attempts=" << job.attempts << " epoch=" << job.epoch << " worker=" << job.worker << " t=" << job.submitted_ms
      << ',' << job.started_ms << ',' << job.ended_ms << " cancel=" << job.cancel_requested << " code=" << job.code << " '"
      << job.message << "' last_seq=" << job.last_seq;
  return out.str();
}

template <typename T>
std::string text_of(const Result<T>& result) {
  return result ? text(*result) : std::string(to_string(result.error().code)) + ": " + result.error().message;
}

// What the holder of an epoch writes, so that a reader can tell who wrote it.
std::string payload(const ClaimedJob& job, std::uint64_t seq) {
  return job.job_id + "/" + std::to_string(job.epoch) + "/" + std::to_string(seq);
}

}  // namespace

QueueLimits walk_limits() {
  QueueLimits limits = small_limits();
  limits.keep_job = milliseconds(120'000);
  limits.keep_output = milliseconds(60'000);
  limits.max_output_bytes = 60;
  return limits;
}

RandomWalk::RandomWalk(World& world, std::uint64_t seed)
    : world_(world), random_(seed), server_(world.submitter()), events_(world.events()) {
  for (std::size_t i = 0; i < kWorkers; ++i) {
    workers_.push_back(world.consumer("w" + std::to_string(i)));
  }
}

std::string RandomWalk::step() {
  constexpr std::uint64_t kKinds = 100;
  const std::uint64_t kind = pick(kKinds);
  if (kind < 20) {
    return submit();
  }
  if (kind < 36) {
    return claim();
  }
  if (kind < 42) {
    const auto by = milliseconds(pick(4) == 0 ? pick(40'000) : pick(6'000));
    world_.advance(by);
    return "advance " + std::to_string(by.count());
  }
  if (kind < 46) {
    const Result<std::size_t> changed = server_->reconcile();
    return "reconcile " + (changed ? std::to_string(*changed) : changed.error().message);
  }
  if (kind < 50) {
    return cancel(any_job());
  }
  if (kind < 53) {
    const std::string id = any_job();
    return "place " + id + " " + std::to_string(server_->place(id).value());
  }
  if (kind < 56) {
    const QueueStats stats = server_->stats().value();
    return "stats " + std::to_string(stats.queued) + " " + std::to_string(stats.running) + " " +
           std::to_string(stats.oldest_queued.count());
  }
  if (kind < 58) {
    const std::size_t worker = pick(kWorkers);
    const Status announced = workers_[worker]->announce("model-" + std::to_string(pick(2)), "a" + std::to_string(kind), "");
    return "announce " + std::to_string(worker) + (announced ? "" : announced.error().message);
  }
  if (claims_.empty()) {
    return claim();
  }
  // Mostly the newest attempts; now and then one that was forgotten long ago comes back.
  const std::size_t newest = std::min<std::size_t>(claims_.size(), 3);
  Claim& held = pick(5) == 0 ? claims_[pick(claims_.size())] : claims_[claims_.size() - 1 - pick(newest)];
  JobConsumer& worker = *workers_[held.worker];
  if (kind < 78) {
    return write(held);
  }
  if (kind < 84) {
    return "beat " + held.job.job_id + " " + text(worker.beat(held.job));
  }
  if (kind < 90) {
    return "release " + held.job.job_id + "/" + std::to_string(held.job.epoch) + " " + text(worker.release(held.job));
  }
  return finish(held);
}

std::string RandomWalk::any_job() {
  if (jobs_.empty() || pick(20) == 0) {
    return "job-unknown";
  }
  auto job = jobs_.begin();
  std::advance(job, pick(jobs_.size()));
  return job->first;
}

std::string RandomWalk::submit() {
  NewJob job = new_job("r" + std::to_string(pick(kRequests)), static_cast<Priority>(pick(3)));
  if (pick(10) == 0) {
    job.digest = "other";
  }
  if (pick(3) == 0) {
    job.max_queue_wait = milliseconds(1 + pick(20'000));
  }
  const Result<SubmitOutcome> outcome = server_->submit(job);
  if (!outcome) {
    return "submit " + job.request_id + " " + std::string(to_string(outcome.error().code)) + ": " + outcome.error().message;
  }
  const auto known = job_of_request_.find(job.request_id);
  if (outcome->duplicate) {
    if (known == job_of_request_.end() || known->second != outcome->job_id) {
      broken("a duplicate of " + job.request_id + " is not the accepted job");
    }
  } else {
    if (known != job_of_request_.end() && server_->get(known->second)) {
      broken(job.request_id + " was accepted twice");
    }
    job_of_request_[job.request_id] = outcome->job_id;
    jobs_[outcome->job_id].request_id = job.request_id;
    jobs_[outcome->job_id].last = server_->get(outcome->job_id).value();
  }
  return "submit " + job.request_id + " " + outcome->job_id + (outcome->duplicate ? " again" : "");
}

std::string RandomWalk::claim() {
  const std::size_t worker = pick(kWorkers);
  const Result<std::optional<ClaimedJob>> claimed = workers_[worker]->claim(milliseconds(0), {});
  if (!claimed) {
    return "claim " + claimed.error().message;
  }
  if (!*claimed) {
    return "claim nothing";
  }
  const ClaimedJob& job = **claimed;
  const auto known = jobs_.find(job.job_id);
  if (known == jobs_.end()) {
    broken("claimed " + job.job_id + ", which nobody submitted");
  } else {
    if (!known->second.epochs_given.insert(job.epoch).second || *known->second.epochs_given.rbegin() != job.epoch) {
      broken(job.job_id + " was given twice in epoch " + std::to_string(job.epoch));
    }
    const NewJob original = new_job(known->second.request_id);
    if (job.spec != original.spec || job.input != original.input) {
      broken(job.job_id + " was given without its spec or input");
    }
  }
  claims_.push_back({job, worker, 0});
  return "claim " + job.job_id + "/" + std::to_string(job.epoch) + " attempt " + std::to_string(job.attempt) + " waited " +
         std::to_string(job.waited.count());
}

std::string RandomWalk::write(Claim& claim) {
  // Mostly the next one; sometimes the last one again (its answer was lost), rarely one too far.
  const std::uint64_t dice = pick(12);
  const std::uint64_t seq = dice == 0 && claim.written > 0 ? claim.written : claim.written + (dice == 1 ? 2 : 1);
  const Result<LeaseAnswer> answer = workers_[claim.worker]->put(claim.job, seq, payload(claim.job, seq));
  if (answer && *answer == LeaseAnswer::kOk) {
    if (seq > claim.written + 1) {
      broken("a hole was accepted in " + claim.job.job_id);
    }
    claim.written = std::max(claim.written, seq);
  }
  return "put " + payload(claim.job, seq) + " " + text(answer);
}

std::string RandomWalk::finish(Claim& claim) {
  constexpr JobState kEnds[] = {JobState::kSucceeded, JobState::kSucceeded, JobState::kFailed, JobState::kCancelled};
  const JobState state = kEnds[pick(4)];
  const std::uint64_t seq = claim.written + 1;
  const Result<LeaseAnswer> answer =
      workers_[claim.worker]->finish(claim.job, state, seq, payload(claim.job, seq), static_cast<int>(pick(3)), "said so");
  return "finish " + payload(claim.job, seq) + " " + std::string(to_string(state)) + " " + text(answer);
}

std::string RandomWalk::cancel(const std::string& job_id) {
  const Result<JobRecord> answer = server_->cancel(job_id);
  const auto known = jobs_.find(job_id);
  if (answer && known != jobs_.end() && answer->cancel_requested && !known->second.cancel_answered) {
    known->second.cancel_answered = true;
    known->second.entries_at_cancel = answer->last_seq;
  }
  return "cancel " + job_id + " " + text_of(answer);
}

void RandomWalk::broken(const std::string& promise) {
  if (broken_.empty()) {
    broken_ = promise;
  }
}

void RandomWalk::check_step(Known& known, const JobRecord& now) {
  const JobRecord& before = known.last;
  if (is_terminal(before.state) && text(before) != text(now)) {
    broken("an ended job changed: " + text(before) + " -> " + text(now));
  }
  if (now.epoch < before.epoch || (now.epoch == before.epoch && now.last_seq < before.last_seq)) {
    broken("epoch or seq fell: " + text(before) + " -> " + text(now));
  }
  if (now.state == JobState::kExpired && now.epoch != 0) {
    broken("expired after a start: " + text(now));
  }
  if (now.attempts > walk_limits().max_attempts || now.attempts > now.epoch) {
    broken("too many attempts: " + text(now));
  }
  if (known.cancel_answered && is_terminal(now.state) && now.state != JobState::kCancelled) {
    broken("a result after an accepted cancel: " + text(now));
  }
  known.last = now;
}

void RandomWalk::check_stream(const Known& known, const EventBatch& batch) {
  std::uint64_t expected = 0;
  ClaimedJob writer;
  writer.job_id = batch.record.job_id;
  writer.epoch = batch.record.epoch;
  for (const StreamEntry& entry : batch.entries) {
    ++expected;
    if (entry.cursor != Cursor{batch.record.epoch, expected}) {
      broken("hole or foreign entry in the stream of " + text(batch.record));
    }
    if (entry.bytes != payload(writer, expected)) {
      broken("entry of another attempt in the stream of " + text(batch.record) + ": " + entry.bytes);
    }
  }
  const bool kept =
      batch.record.ended_ms == 0 || world_.now_ms() < batch.record.ended_ms + walk_limits().keep_output.count();
  if (kept && expected != batch.record.last_seq) {
    broken("entries are missing from the stream of " + text(batch.record));
  }
  // After the answer to a cancel only the entry that says so may come.
  if (known.cancel_answered && batch.record.last_seq > known.entries_at_cancel + 1) {
    broken("entries after an accepted cancel: " + text(batch.record));
  }
}

std::string RandomWalk::check() {
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    const Result<EventBatch> batch = events_->read(job->first, {}, 1000);
    if (!batch) {
      const JobRecord& last = job->second.last;
      if (!is_terminal(last.state) || world_.now_ms() < last.ended_ms + walk_limits().keep_job.count()) {
        broken("an accepted job is gone: " + text(last));
      }
      job = jobs_.erase(job);
      continue;
    }
    check_step(job->second, batch->record);
    check_stream(job->second, *batch);
    ++job;
  }
  return broken_;
}

std::string RandomWalk::drain() {
  // Whoever held a job is dead now.
  world_.advance(walk_limits().lease);
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds && broken_.empty(); ++round) {
    if (!server_->reconcile()) {
      broken("reconcile failed");
    }
    const Result<std::optional<ClaimedJob>> job = workers_[0]->claim(milliseconds(0), {});
    if (!job) {
      broken("claim failed");
    } else if (*job &&
               workers_[0]->finish(**job, JobState::kSucceeded, 1, payload(**job, 1), 0, "").value() != LeaseAnswer::kOk) {
      broken("a healthy worker could not finish " + (*job)->job_id);
    }
    check();
  }
  for (const auto& [id, job] : jobs_) {
    if (!is_terminal(job.last.state)) {
      broken("never ended: " + text(job.last));
    }
  }
  const QueueStats stats = server_->stats().value();
  if (stats.queued != 0 || stats.running != 0) {
    broken("nothing is left, but the counts are " + std::to_string(stats.queued) + " and " + std::to_string(stats.running));
  }
  return broken_;
}

std::string RandomWalk::dump() {
  std::string all;
  const std::vector<JobRecord> jobs = server_->list(std::nullopt, 1000).value();
  for (const JobRecord& job : jobs) {
    all += text(job) + " place=" + std::to_string(server_->place(job.job_id).value()) + "\n";
    const EventBatch batch = events_->read(job.job_id, {}, 1000).value();
    for (const StreamEntry& entry : batch.entries) {
      all += "  " + std::to_string(entry.cursor.epoch) + "-" + std::to_string(entry.cursor.seq) + " " + entry.bytes + "\n";
    }
  }
  for (const JobState state : {JobState::kQueued, JobState::kRunning, JobState::kSucceeded}) {
    all += std::string(to_string(state)) + ":";
    const std::vector<JobRecord> newest = server_->list(state, 3).value();
    for (const JobRecord& job : newest) {
      all += " " + job.job_id;
    }
    all += "\n";
  }
  const std::vector<WorkerRecord> workers = server_->workers().value();
  for (const WorkerRecord& worker : workers) {
    all += worker.name + " " + worker.announcement + "\n";
  }
  const std::vector<std::string> models = server_->known_models().value();
  for (const std::string& model : models) {
    all += model + "\n";
  }
  return all;
}

}  // namespace merope::queue
