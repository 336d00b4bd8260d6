// The path of a camera: per RGB frame a pose, a time and a lens.
#pragma once

#include <vector>

#include "core/base/error.h"
#include "core/camera/model/lens.h"
#include "core/camera/pose.h"

namespace merope::camera {

struct TrajectoryFrame {
  Pose c2w;
  double time_s = 0;
  Lens lens;
};

struct Trajectory {
  std::vector<TrajectoryFrame> frames;
};

// Everything that is wrong, field paths relative to the trajectory ("frames[12].pose"), at most 32 of them: rotations not
// orthonormal to 1e-3 or left-handed, numbers that are not finite, times that do not increase, lenses that are no lenses.
// What is wrong with the lens of every frame is said once, as "lens.pinhole.fx".
std::vector<FieldViolation> validate(const Trajectory& trajectory);

// The same path relative to its first camera, whose pose becomes the identity: what makes large world offsets harmless.
Trajectory rebased(const Trajectory& trajectory);

// The cameras of the latent frames: RGB frame 4l is latent camera l. n_frames must be 4n+1.
std::vector<TrajectoryFrame> latent_cameras(const Trajectory& trajectory);

}  // namespace merope::camera
