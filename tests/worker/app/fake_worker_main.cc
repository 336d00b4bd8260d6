// merope_fake_worker: merope-worker with a scripted engine instead of a model, for tests that kill, freeze and hang real
// processes. Same app, same queue, same signals.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include <CLI/CLI.hpp>

#include "core/base/clock.h"
#include "core/base/exit_codes.h"
#include "core/base/log.h"
#include "core/queue/queue_factory.h"
#include "tests/support/fake_engine.h"
#include "worker/app/worker_app.h"

namespace {

void wait_seconds(double seconds) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, std::chrono::duration<double>(seconds), [] { return false; });
}

}  // namespace

int main(int argc, char** argv) {
  using namespace merope;  // NOLINT(google-build-using-namespace): a program names everything

  worker::prepare_signals();
  std::string redis_url;
  worker::WorkerSettings settings;
  settings.name = "fake";
  settings.version = "test";
  double lease_seconds = 30;
  double drain_seconds = 60;
  double stall_seconds = 600;
  double step_seconds = 0;
  int crash_at_step = 0;
  int hang_at_step = 0;
  int device_lost_at_step = 0;
  log::Config log_config;
  CLI::App app("merope-worker with a scripted engine; model \"fake\"", "merope_fake_worker");
  app.add_option("--redis-url", redis_url)->required();
  app.add_option("--name", settings.name);
  app.add_option("--admin-port", settings.admin.port);
  app.add_option("--lease-seconds", lease_seconds);
  app.add_option("--drain-seconds", drain_seconds);
  app.add_option("--stall-limit", stall_seconds);
  app.add_option("--step-seconds", step_seconds, "What a denoising step and a latent frame take");
  app.add_option("--crash-at-step", crash_at_step, "abort() there");
  app.add_option("--hang-at-step", hang_at_step, "Wait for ever there");
  app.add_option("--device-lost-at-step", device_lost_at_step, "The engine reports a broken device there");
  app.add_option("--log-level", log_config.level);
  CLI11_PARSE(app, argc, argv);
  (void)log::init("merope_fake_worker", log_config);

  const auto clock_seconds = [](double seconds) {
    return std::chrono::duration_cast<Clock::Duration>(std::chrono::duration<double>(seconds));
  };
  settings.drain = clock_seconds(drain_seconds);
  settings.stall_limit = clock_seconds(stall_seconds);
  settings.on_stall = [] { std::_Exit(kExitSoftware); };
  queue::RedisQueueOptions options;
  options.limits.lease = std::chrono::milliseconds(static_cast<std::int64_t>(lease_seconds * 1000));
  auto queue = queue::open_queue(redis_url, options);
  if (!queue) {
    log::error("queue can not be used", {{"reason", queue.error().message}});
    return kExitUnavailable;
  }
  const auto consumer = (*queue)->consumer(settings.name);

  test::FakeScript script;
  script.before_step = [&](int step) {
    if (step == crash_at_step) {
      std::abort();
    }
    wait_seconds(step == hang_at_step ? 1e9 : step_seconds);
  };
  script.before_decode = [&](int) { wait_seconds(step_seconds); };
  if (device_lost_at_step > 0) {
    script.fail_at = {device_lost_at_step, unavailable("the scripted device is lost")};
  }

  const SystemClock clock;
  worker::WorkerApp worker_app(settings, *consumer, clock);
  if (const Status status = worker_app.start_admin(); !status) {
    log::error("admin port can not be opened", {{"reason", status.error().message}});
    return kExitConfig;
  }
  return worker::run_until_signal(worker_app, [&]() -> Result<std::unique_ptr<worker::GenerationEngine>> {
    return std::unique_ptr<worker::GenerationEngine>(std::make_unique<test::FakeEngine>(script));
  });
}
