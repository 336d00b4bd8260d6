#include "server/server_config.h"

#include <cstdio>
#include <map>

#include <CLI/CLI.hpp>

#include "core/base/cli_config.h"
#include "core/base/exit_codes.h"

namespace merope::server {
std::optional<int> read_config(int argc, const char* const* argv, ServerConfig& config) {
  CLI::App app("Front end of the MeRoPE video service: checks requests, queues jobs in Redis, streams their events.",
               "merope-server");
  setup_program(app);
  app.footer(
      "Exit codes: 0 stopped, 64 wrong configuration, 69 Redis can not be reached, 70 a call did not end, 78 a port is in "
      "use.");

  app.add_option("--listen", config.listen, "Address of the gRPC service; port 0 = any free one");
  app.add_option("--address-file", config.address_file, "Write the gRPC address here once the server answers");
  app.add_option("--admin-host", config.admin.host, "Address of /metrics, /healthz and /readyz");
  app.add_option("--admin-port", config.admin.port, "Port of them; 0 = any free one")->check(CLI::Range(0, 65535));
  const std::map<std::string, Reflection> reflection = {
      {"loopback", Reflection::kLoopback}, {"on", Reflection::kOn}, {"off", Reflection::kOff}};
  app.add_option("--reflection", config.reflection, "Server reflection: on, off, or only when listening on loopback")
      ->transform(CLI::CheckedTransformer(reflection))
      ->default_str("loopback");

  app.add_option("--redis-url", config.redis_url, "redis://[:password@]host[:port] or unix:///path/of/socket");
  app.add_option("--max-attempts", config.queue.max_attempts, "Lost leases before a job is given up")
      ->check(CLI::Range(1, 100));
  app.add_option("--max-queued-jobs", config.limits.max_queued_jobs, "Jobs that may wait; more are refused");
  app.add_option("--max-output-bytes", config.queue.max_output_bytes, "Output of one job");
  add_seconds(app, "--keep-job-seconds", config.queue.keep_job, "An ended job can be asked for");
  add_seconds(app, "--keep-output-seconds", config.queue.keep_output, "Its output can be fetched");

  app.add_option("--max-frames", config.limits.max_frames, "RGB frames of a clip");
  app.add_option("--max-pixels-per-frame", config.limits.max_pixels_per_frame, "Width times height");
  app.add_option("--max-pixels-per-clip", config.limits.max_pixels_per_clip, "Width times height times frames");
  app.add_option("--max-steps", config.limits.max_steps, "Denoising steps");
  app.add_option("--max-prompt-bytes", config.limits.max_prompt_bytes, "Length of a prompt");
  app.add_option("--max-picture-bytes", config.limits.max_picture_bytes, "Size of one PNG or JPEG file");
  app.add_option("--max-message-bytes", config.limits.max_message_bytes, "Size of one gRPC message");

  app.add_option("--submit-threads", config.submit_threads, "Threads that wait for the queue")->check(CLI::Range(1, 256));
  app.add_option("--submit-backlog", config.submit_backlog, "Calls that may wait for such a thread")
      ->check(CLI::Range(1, 100000));
  app.add_option("--max-watchers", config.max_watchers, "Streaming calls at once");
  app.add_option("--max-streams-per-connection", config.max_streams_per_connection, "Calls at once on one connection");
  app.add_option("--grpc-memory-bytes", config.grpc_memory_bytes, "Buffers of all calls together");
  add_seconds(app, "--heartbeat-seconds", config.heartbeat, "Queued is repeated while a job waits");
  add_seconds(app, "--reread-seconds", config.reread, "Watched jobs are looked at without a wake-up");
  add_seconds(app, "--slow-reader-seconds", config.slow_reader, "A write that waits longer ends the call");
  add_seconds(app, "--model-refresh-seconds", config.model_refresh, "Models, workers and queue depth are read again");
  add_seconds(app, "--reconcile-seconds", config.reconcile, "Lost leases and waits that are over are looked for");
  add_seconds(app, "--pre-stop-delay-seconds", config.pre_stop_delay, "After a stop signal: not ready, but still serving");
  add_seconds(app, "--drain-seconds", config.drain, "After that: time for running calls to end");

  app.add_option("--log-level", config.log.level, "trace, debug, info, warn, error");
  app.add_option("--log-format", config.log.format, "json, text, auto");

  if (const std::optional<int> exit_code = parse_program(app, argc, argv)) {
    return exit_code;
  }
  config.queue.max_queued = config.limits.max_queued_jobs;
  const std::vector<std::string> problems = config.problems();
  for (const std::string& problem : problems) {
    std::fprintf(stderr, "merope-server: %s\n", problem.c_str());
  }
  return problems.empty() ? std::nullopt : std::optional<int>(kExitUsage);
}

std::vector<std::string> ServerConfig::problems() const {
  std::vector<std::string> found;
  const auto require = [&](bool holds, std::string sentence) {
    if (!holds) {
      found.push_back(std::move(sentence));
    }
  };
  const auto colon = listen.rfind(':');
  require(colon != std::string::npos && colon + 1 < listen.size(), "--listen: \"" + listen + "\" is not host:port");
  require(heartbeat.count() > 0, "--heartbeat-seconds: must be more than 0");
  require(reread.count() > 0, "--reread-seconds: must be more than 0");
  require(slow_reader.count() > 0, "--slow-reader-seconds: must be more than 0");
  require(model_refresh.count() > 0, "--model-refresh-seconds: must be more than 0");
  require(reconcile.count() > 0, "--reconcile-seconds: must be more than 0");
  require(limits.max_frames >= 1 && limits.max_frames <= 100'000, "--max-frames: must be between 1 and 100000");
  require(limits.max_steps >= 1 && limits.max_steps <= 100'000, "--max-steps: must be between 1 and 100000");
  require(limits.max_message_bytes >= 1U << 20U && limits.max_message_bytes <= 1U << 30U,
          "--max-message-bytes: must be between 1 MiB and 1 GiB");
  require(limits.max_queued_jobs >= 1, "--max-queued-jobs: must be at least 1");
  require(max_streams_per_connection >= 1, "--max-streams-per-connection: must be at least 1");
  require(grpc_memory_bytes >= 2 * limits.max_message_bytes,
          "--grpc-memory-bytes: must hold at least two messages of --max-message-bytes");
  return found;
}

bool is_loopback(const std::string& listen) {
  return listen.starts_with("127.") || listen.starts_with("localhost:") || listen.starts_with("[::1]:") ||
         listen.starts_with("unix:");
}

}  // namespace merope::server
