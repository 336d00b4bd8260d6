#include "server/event_fanout.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <utility>

#include <fmt/core.h>

#include "core/base/log.h"

namespace merope::server {
namespace {

constexpr std::size_t kEntriesPerRead = 4;
constexpr std::size_t kLargeEntryBytes = 32 * 1024;
constexpr std::chrono::milliseconds kPauseWhileAway{500};
constexpr std::chrono::milliseconds kShortestSweep{10};

Error going_away(const queue::Cursor& cursor) {
  return unavailable(
      fmt::format("the server is shutting down; resume with Watch after cursor {}-{}", cursor.epoch, cursor.seq));
}

}  // namespace

EventFanout::EventFanout(const FanoutConfig& config,
                         queue::JobEventSource& source,
                         queue::JobSubmitter& submitter,
                         const Clock& clock,
                         ServerMetrics& metrics)
    : config_(config),
      sweep_interval_(std::max(std::min({config.reread, config.heartbeat / 3, config.slow_reader / 3}), kShortestSweep)),
      source_(source),
      submitter_(submitter),
      clock_(clock),
      metrics_(metrics),
      next_sweep_(clock.now()),
      next_reread_(clock.now()) {
  thread_ = std::jthread([this](std::stop_token stop) { run(std::move(stop)); });
}

EventFanout::~EventFanout() {
  thread_.request_stop();
  source_.interrupt();
  thread_.join();
}

void EventFanout::watch(const std::string& job_id,
                        queue::Cursor after,
                        std::shared_ptr<EventReceiver> receiver,
                        std::optional<Acceptance> acceptance) {
  if (ending_) {
    receiver->end(going_away(after));
    return;
  }
  Watcher watcher(StreamPosition(job_id, after), std::move(receiver));
  if (acceptance) {
    watcher.receiver->event(watcher.position.accepted_event(acceptance->request_id, acceptance->duplicate));
  }
  {
    const std::lock_guard lock(mutex_);
    new_watchers_.emplace_back(job_id, std::move(watcher));
  }
  source_.interrupt();
}

void EventFanout::room(const std::string& job_id) {
  {
    const std::lock_guard lock(mutex_);
    with_room_.insert(job_id);
  }
  source_.interrupt();
}

void EventFanout::end_all() {
  ending_ = true;
  source_.interrupt();
}

void EventFanout::run(std::stop_token stop) {
  pthread_setname_np(pthread_self(), "fan-out");
  while (!stop.stop_requested()) {
    Todo todo = wait_for_work(stop);
    if (ending_) {
      end_everything();
      continue;
    }
    sweep(todo);
    for (const auto& [job_id, look] : todo) {
      const auto job = jobs_.find(job_id);
      if (job == jobs_.end()) {
        continue;
      }
      const bool queue_answers = serve_job(job->second, look == Look::kAnyway);
      if (job->second.empty()) {
        jobs_.erase(job);
      }
      if (!queue_answers) {
        // Asking for the others would only wait again. Wake-ups of this round are forgotten, so all are looked at soon.
        next_reread_ = next_sweep_ = clock_.now() + kPauseWhileAway;
        break;
      }
    }
  }
  end_everything();
}

void EventFanout::end_everything() {
  Todo ignored;
  take_new_watchers(ignored);
  for (auto& [job_id, watchers] : jobs_) {
    for (Watcher& watcher : watchers) {
      end_watcher(watcher, going_away(watcher.position.cursor()));
    }
  }
  jobs_.clear();
}

void EventFanout::take_new_watchers(Todo& todo) {
  std::vector<std::pair<std::string, Watcher>> fresh;
  {
    const std::lock_guard lock(mutex_);
    fresh.swap(new_watchers_);
  }
  for (auto& [job_id, watcher] : fresh) {
    todo.emplace(job_id, Look::kIfUnfinished);  // a new watcher is unfinished
    jobs_[job_id].push_back(std::move(watcher));
  }
}

// Returns at the latest when a sweep is due.
EventFanout::Todo EventFanout::wait_for_work(std::stop_token stop) {
  const auto until_sweep = std::chrono::ceil<std::chrono::milliseconds>(next_sweep_ - clock_.now());
  const auto wakeups = source_.wait_for_wakeups(std::max(until_sweep, std::chrono::milliseconds(0)));
  Todo todo;
  if (wakeups) {
    for (const std::string& job_id : *wakeups) {
      todo.emplace(job_id, Look::kAnyway);
    }
  } else {
    pause(stop, kPauseWhileAway);
  }
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& job_id : with_room_) {
      todo.emplace(job_id, Look::kIfUnfinished);
    }
    with_room_.clear();
  }
  take_new_watchers(todo);
  return todo;
}

// Now and then everybody is visited: heartbeats, clients that do not read, jobs whose wake-up got lost.
void EventFanout::sweep(Todo& todo) {
  const Clock::TimePoint now = clock_.now();
  if (now < next_sweep_) {
    return;
  }
  next_sweep_ = now + sweep_interval_;
  const bool reread = now >= next_reread_;
  if (reread) {
    next_reread_ = now + config_.reread;
  }
  end_slow_readers();
  for (auto& [job_id, watchers] : jobs_) {
    if (reread ||
        std::any_of(watchers.begin(), watchers.end(), [&](const Watcher& w) { return heartbeat_is_due(w, now); })) {
      todo[job_id] = Look::kAnyway;
    }
  }
}

bool EventFanout::heartbeat_is_due(const Watcher& watcher, Clock::TimePoint now) const {
  return watcher.queued_told && now - *watcher.queued_told >= config_.heartbeat;
}

// While the queue can not even be waited for: no spinning, but a stop is noticed.
void EventFanout::pause(std::stop_token stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any condition;
  std::unique_lock lock(mutex);
  condition.wait_for(lock, stop, time, [] { return false; });
}

bool EventFanout::serve_job(std::list<Watcher>& watchers, bool look_anyway) {
  bool queue_answers = true;
  for (Watcher& watcher : watchers) {
    watcher.may_have_more |= look_anyway;
    queue_answers = queue_answers && serve(watcher);
  }
  watchers.remove_if([](const Watcher& watcher) { return watcher.ended; });
  return queue_answers;
}

bool EventFanout::serve(Watcher& watcher) {
  if (watcher.receiver->closed()) {
    watcher.ended = true;
    return true;
  }
  while (!watcher.ended && watcher.may_have_more && watcher.receiver->has_room()) {
    if (!read_once(watcher)) {
      return false;
    }
  }
  return true;
}

// False when the queue is away: the watcher is tried again at the next look.
bool EventFanout::read_once(Watcher& watcher) {
  const std::size_t max_entries = watcher.large_events ? 1 : kEntriesPerRead;
  const auto batch = source_.read(watcher.position.job_id(), watcher.position.cursor(), max_entries);
  if (!batch) {
    if (is_retryable(batch.error().code)) {
      if (!std::exchange(queue_is_away_, true)) {
        log::warn("streams wait for the queue", {{"reason", batch.error().message}});
      }
      return false;
    }
    end_watcher(watcher, batch.error());
    return true;
  }
  if (std::exchange(queue_is_away_, false)) {
    log::info("streams go on");
  }

  auto step = watcher.position.advance(*batch);
  if (!step) {
    if (step.error().code == ErrorCode::kDataLoss) {
      log::error("stream of a job is broken", {{"job", watcher.position.job_id()}, {"reason", step.error().message}});
    }
    end_watcher(watcher, step.error());
    return true;
  }
  watcher.large_events = std::any_of(
      batch->entries.begin(), batch->entries.end(), [](const auto& entry) { return entry.bytes.size() > kLargeEntryBytes; });
  watcher.may_have_more = step->read_again || batch->entries.size() == max_entries;
  for (v1::JobEvent& event : step->events) {
    metrics_.events_sent.increment();
    watcher.receiver->event(std::move(event));
  }
  if (step->complete) {
    end_watcher(watcher, std::nullopt);
  } else if (step->waits_in_queue) {
    tell_place(watcher);
  } else {
    watcher.queued_told.reset();
  }
  return true;
}

void EventFanout::tell_place(Watcher& watcher) {
  const Clock::TimePoint now = clock_.now();
  if (watcher.queued_told && !heartbeat_is_due(watcher, now)) {
    return;
  }
  watcher.queued_told = now;
  if (const auto place = submitter_.place(watcher.position.job_id())) {
    metrics_.events_sent.increment();
    watcher.receiver->event(watcher.position.queued_event(*place));
  }
}

void EventFanout::end_slow_readers() {
  const Clock::TimePoint now = clock_.now();
  for (auto& [job_id, watchers] : jobs_) {
    for (Watcher& watcher : watchers) {
      const auto since = watcher.receiver->stalled_since();
      if (!since || now - *since < config_.slow_reader) {
        continue;
      }
      const queue::Cursor& cursor = watcher.position.cursor();
      log::warn("client does not read, its stream was ended", {{"job", job_id}, {"epoch", cursor.epoch}});
      metrics_.slow_readers.increment();
      lingering_.push_back({watcher.receiver, now + config_.slow_reader});
      end_watcher(watcher,
                  Error{ErrorCode::kResourceExhausted,
                        "the client does not read fast enough; resume with the cursor of the last event received"});
    }
    watchers.remove_if([](const Watcher& watcher) { return watcher.ended; });
  }
  std::erase_if(jobs_, [](const auto& job) { return job.second.empty(); });
  std::erase_if(lingering_, [&](const Lingering& call) {
    if (call.receiver->closed()) {
      return true;
    }
    if (now < call.abort_at) {
      return false;
    }
    call.receiver->abort();
    return true;
  });
}

void EventFanout::end_watcher(Watcher& watcher, std::optional<Error> error) {
  watcher.ended = true;
  watcher.receiver->end(std::move(error));
}

}  // namespace merope::server
