// v1.GenerationRequest -> GenerationSpec: every range and default that generation.proto promises is enforced and filled in
// here. Pictures are counted, not opened: the server reads their headers (server/request_limits.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "merope/v1/generation.pb.h"
#include "proto/spec/generation_limits.h"
#include "proto/spec/generation_spec.h"
#include "proto/wire/violations.h"

namespace merope::wire {

// What a request says beyond the spec.
struct GenerationTerms {
  std::string request_id;  // empty: the client gave none
  v1::Priority priority = v1::PRIORITY_NORMAL;
  std::chrono::milliseconds max_queue_wait{0};  // 0 = no limit
  std::chrono::milliseconds max_run_time{0};    // 0 = no limit
};

// `spec` and `terms` are good only when `violations` is empty, except spec.width and height, which are 0 when the size of
// the clip is not known. For an mp4_clip without clip_frames spec.n_conditioning_frames is 0: who reads the clip's header
// sets it.
struct CheckedRequest {
  GenerationSpec spec;
  GenerationTerms terms;
  Violations violations;
};

// `models` must not be empty. `default_seed` is taken when the request has no seed.
CheckedRequest check_request(const v1::GenerationRequest& request,
                             std::span<const ModelDescription> models,
                             const GenerationLimits& limits,
                             std::uint64_t default_seed);

// Whether a clip may begin with so many known frames; adds a violation under `field` when not. n_frames: of the clip.
void check_conditioning_count(std::uint64_t n_conditioning, int n_frames, const std::string& field, Violations& violations);

// Every field set, conditioning left out: reading it back gives the same spec whatever the model's defaults are.
v1::GenerationRequest serialize_spec(const GenerationSpec& spec);

// SHA-256 (hex) of the request without its request_id: equal for equal requests, however they were encoded on the wire.
std::string request_digest(const v1::GenerationRequest& request);

}  // namespace merope::wire
