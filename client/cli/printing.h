// Messages of the service as JSON lines for programs and as text for people.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "merope/v1/generation.pb.h"

namespace merope::cli {

// One line of JSON with its end, fields as in generation.proto; 64-bit numbers are strings, as protobuf's JSON has them.
std::string json_line(const google::protobuf::Message& message);
// The bytes of a fragment are replaced by their number: {"fragment":{"n_bytes":253952,...}}.
std::string json_line(const v1::JobEvent& event);
// {"error":{"code":"INVALID_ARGUMENT","message":"...","violations":[{"field":"frames","description":"..."}]}}
std::string json_line(const Error& error);

// A sentence, and a line for every wrong field.
std::string error_text(const Error& error);
std::string job_text(const v1::Job& job);
std::string job_table(const std::vector<v1::Job>& jobs);
std::string capabilities_text(const v1::Capabilities& capabilities);
// "49 frames, 1.2 MB, seed 7; text 0.1 s, denoise 12.0 s"
std::string finished_text(const v1::Finished& finished);
// "succeeded"
std::string state_name(v1::JobState state);

}  // namespace merope::cli
