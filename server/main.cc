// merope-server: the gRPC front end.
#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <thread>

#include <grpc/support/log.h>

#include "core/base/exit_codes.h"
#include "core/base/log.h"
#include "core/queue/queue_factory.h"
#include "server/server_app.h"
#include "server/server_config.h"

namespace merope::server {
namespace {

// Ends the process when draining does not: a call that never finishes would keep it for ever.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::milliseconds limit)
      : thread_([this, limit](std::stop_token stop) {
          std::unique_lock lock(mutex_);
          condition_.wait_for(lock, stop, limit, [] { return false; });
          if (!stop.stop_requested()) {
            log::error("shutdown took too long, the process is ended", {{"ms", limit.count()}});
            _exit(kExitSoftware);
          }
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any condition_;
  std::jthread thread_;  // last: it uses the others
};

int fail(int code, const Error& error) {
  log::error("server did not start", {{"reason", error.message}, {"exit_code", code}});
  return code;
}

// Written whole or not at all: whoever waits for the file reads a complete address.
Status write_address(const std::string& path, const std::string& address) {
  const std::string unfinished = path + ".new";
  std::ofstream file(unfinished);
  file << address << '\n';
  file.close();
  if (!file || std::rename(unfinished.c_str(), path.c_str()) != 0) {
    return invalid_argument("--address-file: \"" + path + "\" can not be written");
  }
  return {};
}

int run(int argc, char** argv) {
  ServerConfig config;
  if (const auto exit_code = read_config(argc, argv, config)) {
    return *exit_code;
  }
  if (const Status status = log::init("merope-server", config.log); !status) {
    std::fprintf(stderr, "merope-server: %s\n", status.error().message.c_str());
    return kExitUsage;
  }
  // Blocked before any thread starts, so that only sigwait below sees them.
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  // gRPC's own lines become debug lines of our format.
  gpr_set_log_function([](gpr_log_func_args* line) { log::debug("grpc said", {{"text", line->message}}); });

  auto redis = queue::open_queue(config.redis_url, {.limits = config.queue});
  if (!redis) {
    return fail(redis.error().code == ErrorCode::kInvalidArgument ? kExitUsage : kExitUnavailable, redis.error());
  }
  auto app = ServerApp::start(config, {(*redis)->submitter(), (*redis)->events()});
  if (!app) {
    return fail(kExitConfig, app.error());
  }
  if (!config.address_file.empty()) {
    if (const Status status = write_address(config.address_file, (*app)->address()); !status) {
      return fail(kExitUsage, status.error());
    }
  }
  log::info("server is ready", {{"grpc", (*app)->address()}, {"admin_port", (*app)->admin_port()}});

  int signal = 0;
  sigwait(&stop_signals, &signal);
  log::info("stop was asked for", {{"signal", signal}});
  const Watchdog watchdog(config.pre_stop_delay + config.drain + std::chrono::seconds(5));
  (*app)->drain();
  app->reset();
  log::info("server stopped");
  return kExitOk;
}

}  // namespace
}  // namespace merope::server

int main(int argc, char** argv) {
  return merope::server::run(argc, argv);
}
