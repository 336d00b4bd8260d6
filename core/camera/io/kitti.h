// KITTI odometry poses: one pose a line, 12 numbers, a 3x4 matrix [R|t] row by row, camera-to-world (the world being the
// first camera), OpenCV axes, metres. No times and no lens inside: both defaults must be given.
#pragma once

#include "core/camera/io/trajectory_format.h"

namespace merope::camera {

// Blank lines are skipped; everything else is an error that names the line.
Result<Trajectory> parse_kitti(std::string_view text, const FormatDefaults& defaults);
std::string write_kitti(const Trajectory& trajectory);

}  // namespace merope::camera
