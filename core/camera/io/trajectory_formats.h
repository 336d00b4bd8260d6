// The trajectory formats that this build reads. A new one is a file beside kitti.cc and one row in trajectory_formats.cc.
#pragma once

#include <span>

#include "core/camera/io/trajectory_format.h"

namespace merope::camera {

std::span<const TrajectoryFormat> trajectory_formats();

// kInvalidArgument that lists the known names when there is none of this one.
Result<const TrajectoryFormat*> find_trajectory_format(std::string_view name);

// Reads and validates. An empty format name means: look at the text ('{' begins the project's JSON, a number a KITTI file).
Result<Trajectory> parse_trajectory(std::string_view text, std::string_view format_name, const FormatDefaults& defaults);

}  // namespace merope::camera
