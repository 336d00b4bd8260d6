#include "worker/app/worker_app.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "core/base/exit_codes.h"
#include "core/base/log.h"
#include "proto/wire/job_codec.h"

namespace merope::worker {

int exit_code_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument: return kExitUsage;
    case ErrorCode::kNotFound: return kExitNoInput;
    case ErrorCode::kDataLoss:
    case ErrorCode::kUnimplemented: return kExitData;
    case ErrorCode::kFailedPrecondition: return kExitConfig;
    case ErrorCode::kUnavailable: return kExitUnavailable;
    default: return kExitSoftware;
  }
}

WorkerApp::WorkerApp(WorkerSettings settings, queue::JobConsumer& consumer, const Clock& clock)
    : settings_(std::move(settings)),
      consumer_(consumer),
      clock_(clock),
      metrics_(registry_, settings_.device.substr(0, settings_.device.find(':'))) {}

WorkerApp::~WorkerApp() = default;

Status WorkerApp::start_admin() {
  AdminHttp::Probes probes{[this] { return why_not_live(); }, [this] { return why_not_ready(); }};
  MEROPE_ASSIGN_OR_RETURN(admin_, AdminHttp::start(settings_.admin, registry_, std::move(probes)));
  log::info("admin port open", {{"host", settings_.admin.host}, {"port", admin_->port()}});
  return {};
}

int WorkerApp::admin_port() const {
  return admin_ == nullptr ? 0 : admin_->port();
}

std::string WorkerApp::why_not_live() const {
  const std::lock_guard lock(keeper_mutex_);
  return keeper_ != nullptr && keeper_->stalled() ? "the engine does not advance" : "";
}

std::string WorkerApp::why_not_ready() const {
  if (stop_.stop_requested()) {
    return "draining";
  }
  const std::lock_guard lock(keeper_mutex_);
  if (keeper_ == nullptr) {
    return "loading the model";
  }
  if (keeper_->stalled()) {
    return "the engine does not advance";
  }
  if (!keeper_->queue_answers() || claims_fail_) {
    return "the queue does not answer";
  }
  return keeper_->announced() ? "" : "the model is not announced yet";
}

void WorkerApp::request_stop() {
  const bool first = stop_.request_stop();
  metrics_.draining.set(1);
  drain_.request(first ? clock_.now() + settings_.drain : clock_.now());
  log::info(first ? "stop requested" : "stop requested again, the job is given back at its next step");
}

// A wait that a stop request ends.
void WorkerApp::pause(std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop_.get_token(), time, [] { return false; });
}

int WorkerApp::run(const OpenEngine& open_engine) {
  const Clock::TimePoint begin = clock_.now();
  Result<std::unique_ptr<GenerationEngine>> engine = open_engine();
  if (!engine) {
    log::error("model can not be used", {{"code", to_string(engine.error().code)}, {"reason", engine.error().message}});
    return exit_code_of(engine.error());
  }
  metrics_.model_load_seconds.set(seconds_between(begin, clock_.now()));
  const ModelDescription& model = (*engine)->description();
  registry_
      .gauge("merope_worker_model_info",
             "1; the labels say what this worker runs",
             {{"model", model.name}, {"architecture", model.architecture}, {"device", (*engine)->device()}})
      .set(1);

  LeaseKeeper::Options options;
  options.model = model.name;
  options.announcement = wire::encode_announcement({settings_.name, (*engine)->device(), settings_.version, model});
  options.stall_limit = settings_.stall_limit;
  options.on_stall = settings_.on_stall;
  LeaseKeeper keeper(consumer_, clock_, metrics_, std::move(options));
  keeper.start();
  {
    const std::lock_guard lock(keeper_mutex_);
    keeper_ = &keeper;
  }
  log::info("worker ready", {{"worker", settings_.name}, {"model", model.name}, {"device", (*engine)->device()}});
  const int code = work(**engine, keeper);
  {
    const std::lock_guard lock(keeper_mutex_);
    keeper_ = nullptr;
  }
  log::info("worker stopped", {{"exit_code", code}});
  return code;
}

int WorkerApp::work(GenerationEngine& engine, LeaseKeeper& keeper) {
  JobRunner::Options options;
  options.worker = settings_.name;
  options.frames_per_fragment = settings_.frames_per_fragment;
  options.encoder_threads = settings_.encoder_threads;
  options.retry = settings_.retry;
  JobRunner runner(engine, consumer_, keeper, drain_, clock_, metrics_, std::move(options));

  std::chrono::milliseconds retry = settings_.retry.first;
  while (!stop_.stop_requested()) {
    Result<std::optional<queue::ClaimedJob>> claimed = consumer_.claim(settings_.claim_wait, stop_.get_token());
    if (!claimed) {
      metrics_.queue_errors.increment();
      if (!claims_fail_.exchange(true)) {
        log::warn("claim failed", {{"code", to_string(claimed.error().code)}, {"reason", claimed.error().message}});
      }
      pause(retry);
      retry = std::min(retry * 2, settings_.retry.longest);
      continue;
    }
    if (claims_fail_.exchange(false)) {
      log::info("queue is back");
    }
    retry = settings_.retry.first;
    if (!*claimed) {
      continue;
    }
    const JobOutcome outcome = runner.run(std::move(**claimed));
    if (outcome == JobOutcome::kDeviceLost || keeper.stalled()) {
      return kExitSoftware;
    }
    if (outcome == JobOutcome::kNotForUs) {
      pause(settings_.refused_pause);
    }
  }
  return kExitOk;
}

void prepare_signals() {
  signal(SIGPIPE, SIG_IGN);
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  sigaddset(&stops, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stops, nullptr);
}

int run_until_signal(WorkerApp& app, const WorkerApp::OpenEngine& open_engine) {
  std::atomic<bool> ended = false;
  std::atomic<bool> loaded = false;
  std::thread signals([&] {
    pthread_setname_np(pthread_self(), "signals");
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    while (true) {
      int number = 0;
      sigwait(&stops, &number);
      if (ended) {
        return;
      }
      app.request_stop();
      if (!loaded) {
        // Loading can take minutes and nothing has been claimed: there is nothing to end in order.
        std::_Exit(kExitOk);
      }
    }
  });
  const int code = app.run([&] {
    auto engine = open_engine();
    loaded = true;
    return engine;
  });
  ended = true;
  pthread_kill(signals.native_handle(), SIGTERM);  // blocked everywhere, so only this thread's sigwait takes it
  signals.join();
  return code;
}

}  // namespace merope::worker
