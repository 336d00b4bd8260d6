// v1.Trajectory <-> camera::Trajectory. The named conventions of the wire are converted here and nowhere else: everything
// behind this file is camera-to-world, OpenCV axes, metres.
#pragma once

#include <optional>

#include "core/camera/trajectory.h"
#include "merope/v1/trajectory.pb.h"
#include "proto/wire/violations.h"

namespace merope::wire {

// The clip that a trajectory belongs to.
struct ClipShape {
  int width = 0;   // pixels; 0 = unknown because another field is wrong: lenses are then neither compared nor rescaled
  int height = 0;  // pixels
  int fps = 24;    // gives the times when no frame has one
};

// Converts, and adds every violation under "trajectory." ("trajectory.frames[12].pose"). Empty when something is wrong.
// Rotations are checked first (orthonormal to 1e-3, right-handed) and then replaced by the nearest exact one. The lenses of
// the result refer to the clip's size; a picture whose aspect ratio differs by more than 1 % is a violation.
std::optional<camera::Trajectory> parse_trajectory(const v1::Trajectory& message,
                                                   const ClipShape& clip,
                                                   Violations& violations);

// As camera-to-world, OpenCV axes, metres, each with its time; one shared lens when all are the same.
v1::Trajectory serialize_trajectory(const camera::Trajectory& trajectory);

}  // namespace merope::wire
