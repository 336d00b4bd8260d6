#include "server/error_details.h"

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "google/rpc/status.pb.h"

namespace merope::server {
namespace {

constexpr std::size_t kMaxDetailBytes = 4096;
constexpr std::size_t kMaxMessageBytes = 600;
constexpr const char* kDomain = "merope.v1";

// Cut at a character's beginning: a gRPC message is UTF-8.
std::string shortened(const std::string& text) {
  if (text.size() <= kMaxMessageBytes) {
    return text;
  }
  std::size_t end = kMaxMessageBytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  return text.substr(0, end) + "...";
}

int retry_seconds(ErrorCode code) {
  return code == ErrorCode::kResourceExhausted ? 5 : 1;
}

google::rpc::Status with_violations(const Error& error, std::size_t n_violations) {
  google::rpc::Status status;
  status.set_code(static_cast<int>(error.code));
  status.set_message(shortened(error.message));
  google::rpc::ErrorInfo info;
  info.set_reason(error.violations.empty() ? std::string(to_string(error.code)) : "INVALID_FIELDS");
  info.set_domain(kDomain);
  if (n_violations < error.violations.size()) {
    (*info.mutable_metadata())["violations"] = std::to_string(error.violations.size());
  }
  status.add_details()->PackFrom(info);
  if (n_violations > 0) {
    google::rpc::BadRequest bad_request;
    for (std::size_t i = 0; i < n_violations; ++i) {
      auto& violation = *bad_request.add_field_violations();
      violation.set_field(error.violations[i].field);
      violation.set_description(error.violations[i].description);
    }
    status.add_details()->PackFrom(bad_request);
  }
  if (is_retryable(error.code)) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(retry_seconds(error.code));
    status.add_details()->PackFrom(retry);
  }
  return status;
}

}  // namespace

grpc::Status to_grpc_status(const Error& error) {
  std::size_t n_violations = error.violations.size();
  google::rpc::Status status = with_violations(error, n_violations);
  while (n_violations > 0 && status.ByteSizeLong() > kMaxDetailBytes) {
    status = with_violations(error, --n_violations);
  }
  return {static_cast<grpc::StatusCode>(error.code), status.message(), status.SerializeAsString()};
}

}  // namespace merope::server
