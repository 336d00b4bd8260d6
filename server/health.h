// What the service says about itself: grpc.health.v1 for clients, /readyz for load balancers and orchestrators.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

namespace grpc {
class HealthCheckServiceInterface;
}  // namespace grpc

namespace merope::server {

class ModelDirectory;

// Any thread may call it. gRPC health turns NOT_SERVING when the server drains; a queue that is away makes it not ready,
// which takes it out of load balancing, while calls still come through and are answered with UNAVAILABLE.
class Health {
 public:
  // `queue_silence`: a queue that has not answered for so long counts as away.
  Health(const ModelDirectory& directory, std::chrono::milliseconds queue_silence)
      : directory_(directory), queue_silence_(queue_silence) {}

  // Called once, before the first call of a client. `service` may be null; it must outlive the object.
  void serving(grpc::HealthCheckServiceInterface* service);
  void stop_serving();
  // Empty for yes, else why not.
  std::string not_ready() const;

 private:
  const ModelDirectory& directory_;
  const std::chrono::milliseconds queue_silence_;
  grpc::HealthCheckServiceInterface* service_ = nullptr;
  std::atomic<bool> stopping_ = false;
};

}  // namespace merope::server
