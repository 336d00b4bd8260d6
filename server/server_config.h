// What an operator can set on merope-server. Flags have the names of the fields with dashes.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/admin_http.h"
#include "core/base/log.h"
#include "core/queue/job_queue.h"
#include "proto/spec/generation_limits.h"

namespace merope::server {

// Whether server reflection answers; kLoopback: only when listening on a loopback address.
enum class Reflection { kLoopback, kOn, kOff };

struct ServerConfig {
  std::string listen = "127.0.0.1:50051";  // host:port; port 0 = any free one
  std::string address_file;                // gets the address that was chosen, once the server answers; empty = none
  AdminConfig admin = {"127.0.0.1", 9464};
  Reflection reflection = Reflection::kLoopback;

  std::string redis_url = "redis://127.0.0.1:6379";
  queue::QueueLimits queue;
  GenerationLimits limits;

  std::size_t submit_threads = 4;     // that wait for the queue
  std::size_t submit_backlog = 256;   // calls that wait for such a thread; more are refused
  std::size_t max_watchers = 10'000;  // streaming calls at once
  int max_streams_per_connection = 1000;
  std::size_t grpc_memory_bytes = std::size_t{512} << 20U;  // buffers of all calls together

  std::chrono::milliseconds heartbeat{15'000};     // Queued is repeated while a job waits
  std::chrono::milliseconds reread{5'000};         // watched jobs are looked at without a wake-up
  std::chrono::milliseconds slow_reader{30'000};   // a write that waits longer ends the call
  std::chrono::milliseconds model_refresh{2'000};  // known models, workers, queue depth
  std::chrono::milliseconds reconcile{5'000};      // lost leases and waits that are over
  std::chrono::milliseconds pre_stop_delay{0};     // between "not ready" and the end of accepting
  std::chrono::milliseconds drain{5'000};          // for calls to end after that

  log::Config log;

  // Everything that does not fit, with the flag's name; empty when all is well.
  std::vector<std::string> problems() const;
};

// Reads flags, environment and file. An exit code when the program is to end now.
std::optional<int> read_config(int argc, const char* const* argv, ServerConfig& config);

// Whether a listening address names this machine only: 127.*, ::1, localhost, or a Unix socket.
bool is_loopback(const std::string& listen);

}  // namespace merope::server
