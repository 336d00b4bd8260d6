// One thread between the queue and all streaming calls: wake-ups in, events of woken jobs out.
//
// A call whose client reads slowly holds at most one batch of events here and is skipped until it has room again; its next
// events stay in the queue. Wake-ups may get lost, so every watched job is looked at again every few seconds. While the
// queue is away the calls stay open and go on from their cursors when it is back.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "core/queue/job_queue.h"
#include "server/event_receiver.h"
#include "server/server_metrics.h"
#include "server/stream_position.h"

namespace merope::server {

struct FanoutConfig {
  std::chrono::milliseconds heartbeat{15'000};    // Queued is repeated while a job waits
  std::chrono::milliseconds reread{5'000};        // every watched job is looked at
  std::chrono::milliseconds slow_reader{30'000};  // a write that waits longer ends the call; twice that breaks it off
};

// watch(), room() and end_all() may be called from any thread and do not wait.
class EventFanout {
 public:
  // All references must outlive the object.
  EventFanout(const FanoutConfig& config,
              queue::JobEventSource& source,
              queue::JobSubmitter& submitter,
              const Clock& clock,
              ServerMetrics& metrics);
  // Ends the thread. Calls that are still open are told kUnavailable.
  ~EventFanout();
  EventFanout(const EventFanout&) = delete;
  EventFanout& operator=(const EventFanout&) = delete;

  // What Generate sends first: that the job was accepted.
  struct Acceptance {
    std::string request_id;
    bool duplicate = false;
  };
  // Streams the job's events after the cursor to the receiver until it ends or closes.
  void watch(const std::string& job_id,
             queue::Cursor after,
             std::shared_ptr<EventReceiver> receiver,
             std::optional<Acceptance> acceptance = std::nullopt);
  // A receiver of this job has room again, or is closed.
  void room(const std::string& job_id);
  // Ends every call with kUnavailable and its cursor, and every later one at once.
  void end_all();

 private:
  struct Watcher {
    Watcher(StreamPosition at, std::shared_ptr<EventReceiver> to) : position(std::move(at)), receiver(std::move(to)) {}

    StreamPosition position;
    std::shared_ptr<EventReceiver> receiver;
    std::optional<Clock::TimePoint> queued_told;  // when Queued was sent last
    bool may_have_more = true;                    // the last batch was full, or the job has not been read yet
    bool large_events = false;                    // the last batch held fragments: read one entry at a time
    bool ended = false;
  };
  // A call that was ended while its client did not read: broken off if that does not help.
  struct Lingering {
    std::shared_ptr<EventReceiver> receiver;
    Clock::TimePoint abort_at;
  };

  enum class Look { kIfUnfinished, kAnyway };
  using Todo = std::map<std::string, Look>;  // by job

  void run(std::stop_token stop);
  Todo wait_for_work(std::stop_token stop);
  void take_new_watchers(Todo& todo);
  void sweep(Todo& todo);
  bool heartbeat_is_due(const Watcher& watcher, Clock::TimePoint now) const;
  void end_everything();
  // These return false when the queue is away.
  bool serve_job(std::list<Watcher>& watchers, bool look_anyway);
  bool serve(Watcher& watcher);
  bool read_once(Watcher& watcher);
  void tell_place(Watcher& watcher);
  void end_slow_readers();
  void end_watcher(Watcher& watcher, std::optional<Error> error);
  void pause(std::stop_token stop, std::chrono::milliseconds time);

  const FanoutConfig config_;
  const std::chrono::milliseconds sweep_interval_;
  queue::JobEventSource& source_;
  queue::JobSubmitter& submitter_;
  const Clock& clock_;
  ServerMetrics& metrics_;

  std::mutex mutex_;  // guards what other threads put in
  std::vector<std::pair<std::string, Watcher>> new_watchers_;
  std::set<std::string> with_room_;
  std::atomic<bool> ending_ = false;

  // Of the thread alone.
  std::map<std::string, std::list<Watcher>> jobs_;
  std::vector<Lingering> lingering_;
  Clock::TimePoint next_sweep_;
  Clock::TimePoint next_reread_;
  bool queue_is_away_ = false;

  std::jthread thread_;  // last: it uses the others
};

}  // namespace merope::server
