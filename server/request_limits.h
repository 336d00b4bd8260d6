// Conditioning pictures, checked from their headers before anything is queued: a mislabelled, cut-off or giant file is
// refused at the door and no pixel is decoded here.
#pragma once

#include "merope/v1/generation.pb.h"
#include "proto/spec/generation_limits.h"
#include "proto/wire/generation_codec.h"

namespace merope::server {

// Adds what is wrong with the files to `checked.violations`: unknown format, damage, a size other than the clip's, too many
// bytes. For a clip without clip_frames it reads how many frames there are and sets checked.spec.n_conditioning_frames.
void check_conditioning_files(const v1::ConditioningFrames& conditioning,
                              const GenerationLimits& limits,
                              wire::CheckedRequest& checked);

}  // namespace merope::server
