// Models as capabilities messages.
#pragma once

#include <optional>

#include "core/base/result.h"
#include "merope/v1/generation.pb.h"
#include "proto/spec/generation_limits.h"
#include "proto/spec/generation_spec.h"

namespace merope::wire {

v1::ModelCapabilities serialize_model(const ModelDescription& model);
// Takes any message: fields of newer releases are ignored. kDataLoss when a field that validation stands on is missing.
Result<ModelDescription> parse_model(const v1::ModelCapabilities& message);

v1::Limits serialize_limits(const GenerationLimits& limits);

v1::Solver serialize_solver(Solver solver);
std::optional<Solver> parse_solver(v1::Solver solver);
v1::OutputFormat serialize_output(OutputFormat output);

}  // namespace merope::wire
