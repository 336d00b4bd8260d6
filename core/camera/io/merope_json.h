// The project's own trajectory file, which mirrors merope.v1.Trajectory:
//
//   {
//     "format": "merope-trajectory", "version": 1,
//     "pose_direction": "camera_to_world",   or "world_to_camera"
//     "camera_axes": "opencv",               or "opengl", "flu"
//     "length_unit": "metre",                or "centimetre", "millimetre"
//     "lens": {"width": 512, "height": 288, "pinhole": {"fx": 365.6, "fy": 365.6, "cx": 256, "cy": 144}},
//     "frames": [{"time_s": 0, "pose": [1, 0, 0, 0,  0, 1, 0, 0,  0, 0, 1, 0]}, ...]
//   }
//
// A pose is a 3x4 matrix row by row, or a 4x4 one whose last row is 0 0 0 1. A frame may have a lens of its own. The shared
// lens may be absent when every frame has one, or when a default is given; times may be absent from all frames when a frame
// rate is given. Nothing else may be absent, and keys that are not listed here are errors.
#pragma once

#include "core/camera/io/trajectory_format.h"

namespace merope::camera {

// An error in the syntax names line and column, all others the field ("frames[3].pose").
Result<Trajectory> parse_merope_json(std::string_view text, const FormatDefaults& defaults);
// Our own conventions; numbers read back as the same doubles.
std::string write_merope_json(const Trajectory& trajectory);

}  // namespace merope::camera
