// Error -> grpc::Status with google.rpc details: BadRequest for wrong fields, ErrorInfo with a stable reason, RetryInfo when
// the same call may succeed later.
#pragma once

#include <grpcpp/support/status.h>

#include "core/base/error.h"

namespace merope::server {

// Details and message together stay small enough for gRPC's trailers (8 KiB): violations that do not fit are left out, and
// the message says how many there were.
grpc::Status to_grpc_status(const Error& error);

}  // namespace merope::server
