// Builds the server's parts in order, and stops them in order.
#pragma once

#include <memory>
#include <string>

#include "core/base/metrics.h"
#include "core/base/result.h"
#include "core/queue/job_queue.h"
#include "server/server_config.h"

namespace merope::server {

// The queue from the server's two sides.
struct ServerQueue {
  std::unique_ptr<queue::JobSubmitter> submitter;
  std::unique_ptr<queue::JobEventSource> events;
};

class ServerApp {
 public:
  // Listens and serves. kUnavailable naming the port when one of the two is taken.
  static Result<std::unique_ptr<ServerApp>> start(const ServerConfig& config, ServerQueue queue);
  // Drains, if that has not been done.
  ~ServerApp();
  ServerApp(const ServerApp&) = delete;
  ServerApp& operator=(const ServerApp&) = delete;

  // host:port with the port that was chosen; for a Unix socket its name.
  const std::string& address() const;
  int admin_port() const;
  const MetricsRegistry& metrics() const;

  // Not ready and NOT_SERVING; after pre_stop_delay new calls are refused, watchers are told where to resume, and after at
  // most `drain` what is left is cancelled. Returns when no call is left.
  void drain();

 private:
  struct Parts;
  explicit ServerApp(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace merope::server
