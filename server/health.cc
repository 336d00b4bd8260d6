#include "server/health.h"

#include <grpcpp/health_check_service_interface.h>

#include "server/model_directory.h"

namespace merope::server {

void Health::serving(grpc::HealthCheckServiceInterface* service) {
  service_ = service;
  if (service_ != nullptr) {
    service_->SetServingStatus("merope.v1.GenerationService", true);
  }
}

void Health::stop_serving() {
  stopping_ = true;
  if (service_ != nullptr) {
    service_->SetServingStatus(false);  // of every service, the server as a whole included
  }
}

std::string Health::not_ready() const {
  return stopping_ ? "the server is shutting down" : directory_.trouble(queue_silence_);
}

}  // namespace merope::server
