// The encodings that this build knows. A new one is a file beside merope_encoding.cc and one row in encodings.cc.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/camera/encoding/camera_encoding.h"

namespace merope::camera {

std::span<const CameraEncoding> encodings();
std::vector<std::string_view> encoding_names();

// kInvalidArgument that lists the known names when there is none of this one.
Result<const CameraEncoding*> find_encoding(std::string_view name);

// The tables of a job: latent_cameras() of its trajectory, and the token grid of one latent frame. Poses may carry any world
// offset: differences are taken in double. An error names the config key or the camera that is unusable.
Result<EncodingTables> prepare_encoding(std::string_view name,
                                        const EncodingConfig& config,
                                        std::span<const TrajectoryFrame> latent_cameras,
                                        const TokenGrid& grid);

}  // namespace merope::camera
