// A worker, whole: admin port, lease keeper and the loop of jobs, built and stopped here. Which engine it runs is the
// program's choice.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "core/base/admin_http.h"
#include "core/base/clock.h"
#include "core/base/metrics.h"
#include "core/queue/job_queue.h"
#include "worker/app/drain.h"
#include "worker/app/job_runner.h"
#include "worker/app/lease_keeper.h"
#include "worker/engine.h"

namespace merope::worker {

struct WorkerSettings {
  std::string name;     // one per process: what the queue and the clients see
  std::string version;  // of the program
  std::string device = "cpu";
  AdminConfig admin;
  Clock::Duration drain = std::chrono::seconds(60);  // a running job may go on so long after the request to stop
  Clock::Duration stall_limit = std::chrono::seconds(600);
  std::chrono::milliseconds claim_wait{5'000};     // of one call to the queue; a stop request ends it at once
  std::chrono::milliseconds refused_pause{2'000};  // after a job that was given back as not for this worker
  int frames_per_fragment = 8;
  int encoder_threads = 1;
  RetryDelays retry = {};
  std::function<void()> on_stall = {};  // the engine hangs and its lease was given up; from the keeper's thread
};

class WorkerApp {
 public:
  using OpenEngine = std::function<Result<std::unique_ptr<GenerationEngine>>()>;

  // `consumer` and `clock` outlive the app.
  WorkerApp(WorkerSettings settings, queue::JobConsumer& consumer, const Clock& clock);
  ~WorkerApp();

  // Opens the admin port; /readyz says "loading" from then on. kUnavailable when the port is taken.
  Status start_admin();
  int admin_port() const;

  // Loads the engine, then works until a stop is requested. The calling thread becomes the engine thread. Returns the exit
  // code of the process; what went wrong stands on stderr.
  int run(const OpenEngine& open_engine);

  // No new jobs; the running one may end within the drain time, or is given back between two steps. A second call gives it
  // back at the next step. Any thread.
  void request_stop();

  MetricsRegistry& metrics() { return registry_; }

 private:
  int work(GenerationEngine& engine, LeaseKeeper& keeper);
  std::string why_not_ready() const;
  std::string why_not_live() const;
  void pause(std::chrono::milliseconds time);

  const WorkerSettings settings_;
  queue::JobConsumer& consumer_;
  const Clock& clock_;
  MetricsRegistry registry_;
  WorkerMetrics metrics_;
  Drain drain_;
  std::stop_source stop_;
  std::atomic<bool> claims_fail_ = false;
  mutable std::mutex keeper_mutex_;
  LeaseKeeper* keeper_ = nullptr;  // guarded; null while the model is loaded and after the end
  std::unique_ptr<AdminHttp> admin_;
};

// Ignores SIGPIPE, and blocks SIGTERM and SIGINT for this thread and those that it starts: call it first in main().
void prepare_signals();
// app.run() on this thread, with SIGTERM and SIGINT turned into request_stop(). After prepare_signals().
int run_until_signal(WorkerApp& app, const WorkerApp::OpenEngine& open_engine);

// The exit code for an engine that can not be opened (core/base/exit_codes.h).
int exit_code_of(const Error& error);

}  // namespace merope::worker
