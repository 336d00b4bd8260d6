// merope-worker: one process, one device, one job at a time.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/base/exit_codes.h"
#include "core/base/log.h"
#include "core/queue/queue_factory.h"
#include "worker/app/worker_app.h"
#include "worker/pipeline/engine_factory.h"
#include "worker/worker_config.h"

namespace {

// The OpenMP library reads this when it is loaded, before main(): so the program starts itself once more. Threads that spin
// between two parallel regions take the cores from the encoder, the server and Redis on the same machine: on two busy cores
// denoising a clip of 512x288 took twice as long, one of 128x64 more than ten times.
void let_idle_threads_sleep(char** argv) {
  std::error_code no_proc;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", no_proc);
  if (!no_proc && getenv("OMP_WAIT_POLICY") == nullptr && setenv("OMP_WAIT_POLICY", "PASSIVE", 0) == 0) {
    execv(program.c_str(), argv);
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace merope;  // NOLINT(google-build-using-namespace): a program names everything

  let_idle_threads_sleep(argv);
  worker::prepare_signals();
  worker::WorkerConfig config;
  if (const std::optional<int> exit_code = worker::read_config(argc, argv, config)) {
    return *exit_code;
  }
  if (const Status status = log::init("merope-worker", config.log); !status) {
    log::error("log can not be set up", {{"reason", status.error().message}});
    return kExitUsage;
  }

  queue::RedisQueueOptions queue_options;
  queue_options.limits.lease = config.lease;
  Result<std::unique_ptr<queue::RedisQueue>> queue = queue::open_queue(config.redis_url, queue_options);
  if (!queue) {
    log::error("queue can not be used", {{"code", to_string(queue.error().code)}, {"reason", queue.error().message}});
    return queue.error().code == ErrorCode::kInvalidArgument ? kExitUsage : kExitUnavailable;
  }
  const std::unique_ptr<queue::JobConsumer> consumer = (*queue)->consumer(config.name);

  worker::WorkerSettings settings;
  settings.name = config.name;
  settings.version = MEROPE_VERSION;
  settings.device = config.device;
  settings.admin = config.admin;
  settings.drain = config.drain;
  settings.stall_limit = config.stall_limit;
  settings.encoder_threads = config.encoder_threads;
  settings.frames_per_fragment = config.frames_per_fragment;
  // The engine thread sits in a call that does not come back, so nothing here can be ended in order; the job is another's
  // soon.
  settings.on_stall = [] { std::_Exit(kExitSoftware); };

  const SystemClock clock;
  worker::WorkerApp app(std::move(settings), *consumer, clock);
  if (const Status status = app.start_admin(); !status) {
    log::error("admin port can not be opened", {{"reason", status.error().message}});
    return kExitConfig;
  }
  return worker::run_until_signal(app, [&config] {
    return worker::open_engine({.model = config.model,
                                .device = config.device,
                                .threads = config.threads,
                                .experts = *worker::parse_expert_residency(config.experts)});
  });
}
