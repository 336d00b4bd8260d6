// The admin port of server and worker: /metrics (Prometheus text), /healthz (the process lives), /readyz (it can take work).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/metrics.h"
#include "core/base/result.h"

namespace merope {

struct AdminConfig {
  std::string host = "127.0.0.1";  // address to listen on
  int port = 0;                    // 0 = any free port
};

// Answers from threads of its own until it is destroyed.
class AdminHttp {
 public:
  // Both return an empty string for "yes", else the reason for "no", which becomes the body of a 503. Called from HTTP
  // threads; must not block.
  struct Probes {
    std::function<std::string()> live;
    std::function<std::string()> ready;
  };

  // kUnavailable naming the address when the port is taken. `metrics` must outlive the object.
  static Result<std::unique_ptr<AdminHttp>> start(const AdminConfig& config, const MetricsRegistry& metrics, Probes probes);
  ~AdminHttp();
  AdminHttp(const AdminHttp&) = delete;
  AdminHttp& operator=(const AdminHttp&) = delete;

  int port() const;

 private:
  struct Impl;
  explicit AdminHttp(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace merope
