// From what the command line says to a request: reads the files, lays the trajectory, fills in the lens.
#pragma once

#include <functional>

#include "client/cli/cli_options.h"
#include "core/base/result.h"
#include "merope/v1/generation.pb.h"

namespace merope::cli {

// Asked only when a default of the model is needed to lay the trajectory (frame rate, size of the picture).
using CapabilitiesSource = std::function<Result<v1::Capabilities>()>;

// Errors: kNotFound naming a file that is not there; kInvalidArgument naming file and line, or option; those of the source.
Result<v1::GenerationRequest> build_request(const SubmitOptions& options, const CapabilitiesSource& capabilities);

}  // namespace merope::cli
