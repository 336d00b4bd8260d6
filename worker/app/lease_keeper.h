// Says "still alive" for the worker and for its job: announces the worker, renews the lease, and watches that the engine
// thread advances. A device call that hangs therefore loses its lease, instead of a dead worker that beats for ever.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/clock.h"
#include "core/queue/job_queue.h"
#include "worker/app/job_lease.h"
#include "worker/app/worker_metrics.h"

namespace merope::worker {

// Internally locked.
class LeaseKeeper {
 public:
  struct Options {
    std::string model;         // under which the announcement is kept
    std::string announcement;  // bytes of v1.WorkerAnnouncement
    Clock::Duration announce_every = std::chrono::seconds(5);
    Clock::Duration stall_limit = std::chrono::seconds(600);  // longest step that is believed
    std::function<void()> on_stall = {};  // called once, from the keeper's thread, after the beats stopped
  };

  LeaseKeeper(queue::JobConsumer& consumer, const Clock& clock, WorkerMetrics& metrics, Options options);
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // Starts the thread. Tests that turn the clock by hand call tick() instead.
  void start();
  // One round: does what is due. Returns the time until the next.
  Clock::Duration tick();

  // Begins to beat for a job that was claimed just now.
  std::shared_ptr<JobLease> hold(queue::ClaimedJob job);
  // Ends the beats: the job has ended, was given back or is another's.
  void drop();

  // Whether the queue answered the last time it was asked.
  bool queue_answers() const { return queue_answers_; }
  // Whether the worker has been announced: before that no server knows its model.
  bool announced() const { return announced_; }
  bool stalled() const { return stalled_; }

 private:
  void keep(const std::shared_ptr<JobLease>& lease, Clock::TimePoint now);
  void announce(const std::string& current_job, Clock::TimePoint now);

  queue::JobConsumer& consumer_;
  const Clock& clock_;
  WorkerMetrics& metrics_;
  const Options options_;
  std::atomic<bool> queue_answers_ = true;
  std::atomic<bool> announced_ = false;
  std::atomic<bool> stalled_ = false;

  std::mutex mutex_;  // guards what follows; never held during a call to the queue
  std::condition_variable_any woken_;
  bool wake_ = false;
  std::shared_ptr<JobLease> lease_;
  Clock::TimePoint next_beat_;
  Clock::TimePoint next_announce_;

  std::jthread thread_;  // last: joined before the rest goes away
};

}  // namespace merope::worker
