// MeRoPE (arXiv 2609.01252): full metric relative pose in four norm-preserving parts of a head (Eq. 11).
#pragma once

#include "core/camera/encoding/camera_encoding.h"

namespace merope::camera {

constexpr EncodingTraits kMeropeTraits = {.queries = true, .keys = true, .values = true, .outputs = true, .grouped = true};

Result<EncodingTables> prepare_merope_encoding(const EncodingConfig& config, const EncodingInputs& inputs);

}  // namespace merope::camera
