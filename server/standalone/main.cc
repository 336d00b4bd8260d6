// merope-standalone: a whole service on one machine. Starts a private Redis, merope-server and one merope-worker, the same
// programs that run in production, and stops them in order.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/base/cli_config.h"
#include "core/base/exit_codes.h"
#include "core/base/log.h"
#include "server/standalone/append_only_tail.h"
#include "server/standalone/ready_probe.h"
#include "server/standalone/state_folder.h"
#include "server/standalone/supervisor.h"

namespace merope::standalone {
namespace {

struct Config {
  std::string state = "merope-state";
  std::string model;
  std::string device = "cpu";
  std::string listen = "127.0.0.1:50051";
  std::string admin_host = "127.0.0.1";
  int admin_port = 0;
  int worker_admin_port = 0;
  std::string bin_dir;
  std::string redis_server = "redis-server";
  std::vector<std::string> server_arguments;
  std::vector<std::string> worker_arguments;
  double start_seconds = 120;
  double stop_seconds = 30;
  double drain_seconds = 5;
  double lease_seconds = 30;
  log::Config log;
};

std::optional<int> read_config(int argc, const char* const* argv, Config& config) {
  CLI::App app(
      "The whole MeRoPE video service on this machine: a private Redis, merope-server and one merope-worker.\n"
      "Ctrl-C stops them in order; a second start on the same state folder goes on with the jobs that were queued.",
      "merope-standalone");
  setup_program(app);
  app.footer(
      "Exit codes: 0 stopped, 64 wrong configuration, 66 a program is missing, 69 a program did not become ready,\n"
      "78 the state folder or a port is in use; else that of the program that did not start (65: the model is broken).");
  app.add_option("--state", config.state, "Folder for Redis' files, made if needed; one service at a time");
  app.add_option("--model", config.model, "Folder of the checkpoint")->required();
  app.add_option("--device", config.device, "cpu, cuda or cuda:n");
  app.add_option("--listen",
                 config.listen,
                 "Address of the gRPC service; port 0 = any free one, see server.address in the state folder");
  app.add_option("--admin-host", config.admin_host, "Address of the admin pages (/metrics, /readyz)");
  app.add_option("--admin-port", config.admin_port, "Port of the server's admin pages; 0 = any free one")
      ->check(CLI::Range(0, 65535));
  app.add_option("--worker-admin-port", config.worker_admin_port, "Port of the worker's admin pages; 0 = any free one")
      ->check(CLI::Range(0, 65535));
  app.add_option("--bin-dir", config.bin_dir, "Folder of merope-server and merope-worker; default: that of this program");
  app.add_option("--redis-server", config.redis_server, "Redis program, a path or a name on PATH");
  app.add_option("--server-arg", config.server_arguments, "One more argument for merope-server; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--worker-arg", config.worker_arguments, "One more argument for merope-worker; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--start-seconds", config.start_seconds, "Time for one program to become ready")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_option("--stop-seconds", config.stop_seconds, "Time for one program to stop before it is killed")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_option("--drain-seconds", config.drain_seconds, "Time for a running job to end before it goes back into the queue")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("--lease-seconds", config.lease_seconds, "A worker that is silent for so long loses its job")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_option("--log-level", config.log.level, "trace, debug, info, warn, error");
  app.add_option("--log-format", config.log.format, "json, text, auto");
  return parse_program(app, argc, argv);
}

std::chrono::milliseconds from_seconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

int fail(int code, const std::string& reason) {
  log::error("service did not start", {{"reason", reason}, {"exit_code", code}});
  return code;
}

std::vector<std::string> joined(std::vector<std::string> command, const std::vector<std::string>& more) {
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

// The three programs, in the order of their start. Errors: kNotFound (a program is missing), kUnavailable (no port).
Result<std::vector<ChildSpec>> plan(const Config& config, const StateFolder& state) {
  std::string folder = config.bin_dir;
  if (folder.empty()) {
    std::error_code failure;
    folder = std::filesystem::read_symlink("/proc/self/exe", failure).parent_path().string();
  }
  MEROPE_ASSIGN_OR_RETURN(const std::string redis, find_program("", config.redis_server));
  MEROPE_ASSIGN_OR_RETURN(const std::string server, find_program(folder, "merope-server"));
  MEROPE_ASSIGN_OR_RETURN(const std::string worker, find_program(folder, "merope-worker"));
  const std::string& host = config.admin_host;
  int server_port = config.admin_port;
  int worker_port = config.worker_admin_port;
  for (int* port : {&server_port, &worker_port}) {
    if (*port == 0) {
      MEROPE_ASSIGN_OR_RETURN(*port, free_port(host));
    }
  }
  const std::string redis_url = "unix://" + state.redis_socket();
  const std::vector<std::string> shared = {
      "--redis-url", redis_url, "--admin-host", host, "--log-level", config.log.level, "--log-format", config.log.format};

  std::vector<ChildSpec> specs;
  specs.push_back({"redis",
                   [=, &state] {
                     const Result<std::uint64_t> cut = cut_torn_tail(state.append_only_folder());
                     if (!cut) {
                       log::error("append-only file can not be checked", {{"reason", cut.error().message}});
                     } else if (*cut > 0) {
                       log::warn("half-written end of the append-only file was cut off", {{"bytes", *cut}});
                     }
                     return std::vector<std::string>{redis, state.redis_config()};
                   },
                   [&state] { return redis_answers(state.redis_socket()); },
                   state.redis_log()});
  const auto server_command = [=, &state, more = config.server_arguments, listen = config.listen] {
    // A server that is started again comes back under the address that clients know.
    const std::string known = state.listening_address();
    const std::vector<std::string> own = {server,
                                          "--listen",
                                          known.empty() ? listen : known,
                                          "--address-file",
                                          state.listening_file(),
                                          "--admin-port",
                                          std::to_string(server_port)};
    return joined(joined(own, shared), more);
  };
  specs.push_back(
      {"server",
       server_command,
       [&state, host, server_port] { return !state.listening_address().empty() && http_is_ready(host, server_port); },
       "its log above"});
  const auto worker_command = [=,
                               model = config.model,
                               device = config.device,
                               more = config.worker_arguments,
                               drain = CLI::detail::to_string(config.drain_seconds),
                               lease = CLI::detail::to_string(config.lease_seconds)] {
    const std::vector<std::string> own = {worker,
                                          "--model",
                                          model,
                                          "--device",
                                          device,
                                          "--admin-port",
                                          std::to_string(worker_port),
                                          "--drain-seconds",
                                          drain,
                                          "--lease-seconds",
                                          lease};
    return joined(joined(own, shared), more);
  };
  specs.push_back(
      {"worker", worker_command, [host, worker_port] { return http_is_ready(host, worker_port); }, "its log above"});
  return specs;
}

int run(int argc, char** argv) {
  Config config;
  if (const auto exit_code = read_config(argc, argv, config)) {
    return *exit_code;
  }
  if (const Status status = log::init("merope-standalone", config.log); !status) {
    std::fprintf(stderr, "merope-standalone: %s\n", status.error().message.c_str());
    return kExitUsage;
  }
  std::signal(SIGPIPE, SIG_IGN);
  const Result<StateFolder> state = StateFolder::open(config.state);
  if (!state) {
    return fail(state.error().code == ErrorCode::kAlreadyExists ? kExitConfig : kExitUsage, state.error().message);
  }
  if (const Status status = state->write_redis_config(); !status) {
    return fail(kExitUsage, status.error().message);
  }
  const auto specs = plan(config, *state);
  if (!specs) {
    return fail(specs.error().code == ErrorCode::kNotFound ? kExitNoInput : kExitConfig, specs.error().message);
  }

  Supervisor supervisor(
      *specs, {.start_limit = from_seconds(config.start_seconds), .stop_limit = from_seconds(config.stop_seconds)});
  const int code = supervisor.run([&]() -> Status {
    const std::string address = state->listening_address();
    MEROPE_RETURN_IF_ERROR(state->write_address(address));
    std::printf("ready: grpc %s, state %s\n", address.c_str(), state->path().c_str());
    std::fflush(stdout);
    return {};
  });
  state->remove_addresses();
  return code;
}

}  // namespace
}  // namespace merope::standalone

int main(int argc, char** argv) {
  return merope::standalone::run(argc, argv);
}
