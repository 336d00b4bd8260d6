#include "core/camera/trajectory.h"

#include <cmath>
#include <string>

#include <Eigen/LU>

#include "core/base/check.h"
#include "core/camera/internal/number_text.h"

namespace merope::camera {
namespace {

constexpr std::size_t kMaxViolations = 32;
constexpr double kMaxOrthonormalityError = 1e-3;

// Empty when the pose is one.
std::string pose_problem(const Pose& pose) {
  for (const double value : pose.rotation.reshaped()) {
    if (!std::isfinite(value)) {
      return "rotation holds " + internal::shortest(value);
    }
  }
  for (const double value : pose.centre) {
    if (!std::isfinite(value)) {
      return "translation holds " + internal::shortest(value);
    }
  }
  const double error = orthonormality_error(pose.rotation);
  if (error > kMaxOrthonormalityError) {
    return "rotation is not orthonormal (error " + internal::rough(error) + ")";
  }
  const double determinant = pose.rotation.determinant();
  if (determinant < 0) {
    return "rotation is left-handed (determinant " + internal::rough(determinant) + ")";
  }
  return "";
}

// Empty when the time may follow the one before.
std::string time_problem(double time_s, const double* previous_s) {
  if (!std::isfinite(time_s)) {
    return internal::shortest(time_s) + " is not finite";
  }
  if (previous_s != nullptr && std::isfinite(*previous_s) && time_s <= *previous_s) {
    return internal::shortest(time_s) + " is not after " + internal::shortest(*previous_s);
  }
  return "";
}

// Whether the lenses of all frames have the same faults, as those of a trajectory with one lens do.
bool same_faults(const std::vector<std::vector<FieldViolation>>& by_frame) {
  for (const auto& violations : by_frame) {
    if (violations != by_frame.front()) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<FieldViolation> validate(const Trajectory& trajectory) {
  std::vector<FieldViolation> violations;
  const auto add = [&](std::string field, std::string description) {
    if (!description.empty() && violations.size() < kMaxViolations) {
      violations.push_back({std::move(field), std::move(description)});
    }
  };
  const std::vector<TrajectoryFrame>& frames = trajectory.frames;
  if (frames.empty()) {
    add("frames", "is empty");
    return violations;
  }
  std::vector<std::vector<FieldViolation>> lens_faults;
  lens_faults.reserve(frames.size());
  for (const TrajectoryFrame& frame : frames) {
    lens_faults.push_back(validate(frame.lens));
  }
  const bool one_lens = same_faults(lens_faults);
  if (one_lens) {
    for (const FieldViolation& fault : lens_faults.front()) {
      add("lens." + fault.field, fault.description);
    }
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::string path = "frames[" + std::to_string(i) + "]";
    add(path + ".pose", pose_problem(frames[i].c2w));
    add(path + ".time_s", time_problem(frames[i].time_s, i == 0 ? nullptr : &frames[i - 1].time_s));
    if (!one_lens) {
      for (const FieldViolation& fault : lens_faults[i]) {
        add(path + ".lens." + fault.field, fault.description);
      }
    }
  }
  return violations;
}

Trajectory rebased(const Trajectory& trajectory) {
  Trajectory result = trajectory;
  for (TrajectoryFrame& frame : result.frames) {
    frame.c2w = relative_pose(trajectory.frames.front().c2w, frame.c2w);
  }
  return result;
}

std::vector<TrajectoryFrame> latent_cameras(const Trajectory& trajectory) {
  MEROPE_CHECK(trajectory.frames.size() % 4 == 1, "latent_cameras() of a trajectory whose frame count is not 4n+1");
  std::vector<TrajectoryFrame> cameras;
  for (std::size_t i = 0; i < trajectory.frames.size(); i += 4) {
    cameras.push_back(trajectory.frames[i]);
  }
  return cameras;
}

}  // namespace merope::camera
