#include "worker/worker_config.h"

#include <unistd.h>

#include <array>
#include <cstdio>

#include <CLI/CLI.hpp>

#include "core/base/cli_config.h"
#include "core/base/exit_codes.h"
#include "core/base/ids.h"

namespace merope::worker {
namespace {

// Fresh for every process: a name that comes back would answer for what its predecessor left.
std::string default_name() {
  std::array<char, 65> host{};
  if (gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') {
    return random_id("worker");
  }
  return std::string(host.data()) + random_id("").substr(0, 9);
}

}  // namespace

std::optional<int> read_config(int argc, const char* const* argv, WorkerConfig& config) {
  CLI::App app("Takes video jobs from the queue, runs the model and publishes the clips.", "merope-worker");
  setup_program(app);
  app.footer(
      "Exit codes: 0 stopped, 64 wrong configuration, 65 broken weights or checkpoint, 66 model folder or file missing, 69 "
      "Redis "
      "can not be reached, 70 the device or the program failed, start again, 78 the admin port is in use or there is no "
      "such "
      "device.");

  app.add_option("--model", config.model, "Model folder in the diffusers layout");
  app.add_option("--device", config.device, "cpu, cuda or cuda:<n>");
  app.add_option("--threads", config.threads, "Threads of the CPU kernels; 0 = one per core")->check(CLI::Range(0, 1024));
  app.add_option("--experts", config.experts, "Transformers of a model of two in memory at a time: auto, both or one")
      ->check(CLI::IsMember({"auto", "both", "one"}));
  app.add_option("--name", config.name, "Name of this worker, one per process; default: host name and random digits");
  app.add_option("--admin-host", config.admin.host, "Address of /metrics, /healthz and /readyz");
  app.add_option("--admin-port", config.admin.port, "Port of them; 0 = any free one")->check(CLI::Range(0, 65535));

  app.add_option("--redis-url", config.redis_url, "redis://[:password@]host[:port] or unix:///path/of/socket");
  add_seconds(app, "--lease-seconds", config.lease, "A worker that is silent for so long loses its job");
  add_seconds(
      app, "--drain-seconds", config.drain, "After a stop signal: time for the running job to end before it is given back");
  add_seconds(app, "--stall-limit", config.stall_limit, "An engine that takes longer for one step has hung: exit 70");

  app.add_option("--encoder-threads", config.encoder_threads, "Threads of the video encoder")->check(CLI::Range(1, 64));
  app.add_option("--frames-per-fragment", config.frames_per_fragment, "Frames of one streamed fragment")
      ->check(CLI::Range(1, 1000));

  app.add_option("--log-level", config.log.level, "trace, debug, info, warn, error");
  app.add_option("--log-format", config.log.format, "json, text, auto");

  if (const std::optional<int> exit_code = parse_program(app, argc, argv)) {
    return exit_code;
  }
  if (config.name.empty()) {
    config.name = default_name();
  }
  const std::vector<std::string> problems = config.problems();
  for (const std::string& problem : problems) {
    std::fprintf(stderr, "merope-worker: %s\n", problem.c_str());
  }
  return problems.empty() ? std::nullopt : std::optional<int>(kExitUsage);
}

std::vector<std::string> WorkerConfig::problems() const {
  std::vector<std::string> found;
  const auto require = [&](bool holds, std::string sentence) {
    if (!holds) {
      found.push_back(std::move(sentence));
    }
  };
  require(!model.empty(), "--model: name the folder of a model");
  require(is_valid_id(name), "--name: \"" + name + "\" is not 1 to 128 characters of A-Z a-z 0-9 . _ -");
  require(lease >= std::chrono::milliseconds(100), "--lease-seconds: must be at least 0.1");
  require(stall_limit >= lease, "--stall-limit: must be at least --lease-seconds");
  return found;
}

}  // namespace merope::worker
