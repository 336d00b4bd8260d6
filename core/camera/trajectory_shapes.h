// Paths of a camera written down in a word: "straight:20m,turn:30deg".
//
// An expression is a list of segments joined by commas; each starts where and as the one before it ended. The first camera
// is the identity: it looks along z, y points down. Left is positive.
//
//   straight:20m          forward; negative: backward
//   turn:30deg            a left bend of 30 degrees with a radius of 15 m; turn:-30deg is to the right
//   turn:30deg/10m        the same over 10 m of road
//   lane:3.5m             a lane change to the left, over a road of 8 times the offset; lane:-3.5m is to the right
//   lane:3.5m/40m         the same over 40 m of road; the heading is along the path, and straight at both ends
//   orbit:90deg/10m       around the point 10 m ahead, which stays in the middle of the picture; the camera turns to the
//   left
//                         and so moves to its right
//
// Lengths are in m, angles in deg or rad; the unit must be there. The camera moves along the whole path at one speed, from
// its start in the first frame to its end in the last one. "straight:0m" stands still.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/camera/trajectory.h"

namespace merope::camera {

// n_frames >= 1 cameras with times 0, 1/fps, 2/fps, ... An error names the segment that is wrong, by number and text.
Result<Trajectory> trajectory_from_shape(std::string_view expression, int n_frames, double fps, const Lens& lens);

}  // namespace merope::camera
