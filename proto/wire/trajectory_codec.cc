#include "proto/wire/trajectory_codec.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/core.h>

#include "core/camera/pose_conventions.h"

namespace merope::wire {
namespace {

constexpr double kAspectTolerance = 0.01;
constexpr std::uint32_t kMaxPictureSide = 65536;

std::string unknown_value(int value) {
  return value == 0 ? "is required: conventions are never guessed" : fmt::format("unknown value {}", value);
}

// The named conventions; a field that has no or no known value is a violation.
camera::PoseConventions parse_conventions(const v1::Trajectory& message, Violations& violations) {
  camera::PoseConventions conventions;
  switch (message.pose_direction()) {
    case v1::POSE_DIRECTION_CAMERA_TO_WORLD: conventions.direction = camera::PoseDirection::kCameraToWorld; break;
    case v1::POSE_DIRECTION_WORLD_TO_CAMERA: conventions.direction = camera::PoseDirection::kWorldToCamera; break;
    default: violations.add("trajectory.pose_direction", unknown_value(message.pose_direction()));
  }
  switch (message.camera_axes()) {
    case v1::CAMERA_AXES_OPENCV: conventions.axes = camera::CameraAxes::kOpenCv; break;
    case v1::CAMERA_AXES_OPENGL: conventions.axes = camera::CameraAxes::kOpenGl; break;
    case v1::CAMERA_AXES_FLU: conventions.axes = camera::CameraAxes::kFlu; break;
    default: violations.add("trajectory.camera_axes", unknown_value(message.camera_axes()));
  }
  switch (message.length_unit()) {
    case v1::LENGTH_UNIT_METRE: conventions.unit = camera::LengthUnit::kMetre; break;
    case v1::LENGTH_UNIT_CENTIMETRE: conventions.unit = camera::LengthUnit::kCentimetre; break;
    case v1::LENGTH_UNIT_MILLIMETRE: conventions.unit = camera::LengthUnit::kMillimetre; break;
    default: violations.add("trajectory.length_unit", unknown_value(message.length_unit()));
  }
  return conventions;
}

// The 12 or 16 numbers as they were sent; empty when they are no [R|t].
std::optional<camera::Matrix34> parse_matrix(const v1::TrajectoryFrame& frame,
                                             const std::string& field,
                                             Violations& violations) {
  const auto& numbers = frame.pose();
  if (numbers.size() != 12 && numbers.size() != 16) {
    violations.add(field, fmt::format("has {} numbers; 12 or 16 are needed", numbers.size()));
    return std::nullopt;
  }
  for (int i = 0; i < numbers.size(); ++i) {
    if (!std::isfinite(numbers[i])) {
      violations.add(fmt::format("{}[{}]", field, i), fmt::format("{} is not a finite number", numbers[i]));
      return std::nullopt;
    }
  }
  if (numbers.size() == 16 && (numbers[12] != 0 || numbers[13] != 0 || numbers[14] != 0 || numbers[15] != 1)) {
    violations.add(field,
                   fmt::format("last row is {} {} {} {}, not 0 0 0 1", numbers[12], numbers[13], numbers[14], numbers[15]));
    return std::nullopt;
  }
  camera::Matrix34 matrix;
  for (int i = 0; i < 12; ++i) {
    matrix(i / 4, i % 4) = numbers[i];
  }
  return matrix;
}

// A lens for the clip's size; empty after violations.
std::optional<camera::Lens> parse_lens(const v1::Lens& message,
                                       const std::string& field,
                                       const ClipShape& clip,
                                       Violations& violations) {
  const std::size_t before = violations.size();
  const auto check_side = [&](const char* name, std::uint32_t side) {
    if (side < 1 || side > kMaxPictureSide) {
      violations.add(field + "." + name, fmt::format("{} is not between 1 and {}", side, kMaxPictureSide));
    }
  };
  check_side("width", message.width());
  check_side("height", message.height());
  if (!message.has_pinhole()) {
    violations.add(field + ".model", "exactly one camera model is required: pinhole");
  }
  if (violations.size() != before) {
    return std::nullopt;
  }

  camera::Lens lens;
  lens.width = static_cast<int>(message.width());
  lens.height = static_cast<int>(message.height());
  const v1::Pinhole& pinhole = message.pinhole();
  lens.model = camera::Pinhole{pinhole.fx(), pinhole.fy(), pinhole.cx(), pinhole.cy()};
  std::vector<FieldViolation> wrong = camera::validate(lens);
  if (!wrong.empty()) {
    violations.add_all(field + ".", std::move(wrong));
    return std::nullopt;
  }
  if (clip.width == 0 || clip.height == 0) {
    return lens;
  }
  const double lens_aspect = static_cast<double>(lens.width) / lens.height;
  const double clip_aspect = static_cast<double>(clip.width) / clip.height;
  if (std::abs(lens_aspect / clip_aspect - 1) > kAspectTolerance) {
    violations.add(field,
                   fmt::format("aspect ratio of {}x{} differs by more than 1 % from that of the clip, {}x{}",
                               lens.width,
                               lens.height,
                               clip.width,
                               clip.height));
    return std::nullopt;
  }
  return camera::rescaled(lens, clip.width, clip.height);
}

// Either every frame has a time or none has.
bool check_times(const v1::Trajectory& message, Violations& violations) {
  const auto n_timed = std::count_if(
      message.frames().begin(), message.frames().end(), [](const v1::TrajectoryFrame& frame) { return frame.has_time_s(); });
  if (n_timed != 0 && n_timed != message.frames_size()) {
    violations.add(
        "trajectory.frames",
        fmt::format("{} of {} frames have a time_s; either all of them have one or none", n_timed, message.frames_size()));
    return false;
  }
  return true;
}

bool same_lens(const camera::Lens& a, const camera::Lens& b) {
  const auto& p = std::get<camera::Pinhole>(a.model);
  const auto& q = std::get<camera::Pinhole>(b.model);
  return a.width == b.width && a.height == b.height && p.fx == q.fx && p.fy == q.fy && p.cx == q.cx && p.cy == q.cy;
}

void serialize_lens(const camera::Lens& lens, v1::Lens& message) {
  message.set_width(static_cast<std::uint32_t>(lens.width));
  message.set_height(static_cast<std::uint32_t>(lens.height));
  const auto& pinhole = std::get<camera::Pinhole>(lens.model);
  message.mutable_pinhole()->set_fx(pinhole.fx);
  message.mutable_pinhole()->set_fy(pinhole.fy);
  message.mutable_pinhole()->set_cx(pinhole.cx);
  message.mutable_pinhole()->set_cy(pinhole.cy);
}

}  // namespace

std::optional<camera::Trajectory> parse_trajectory(const v1::Trajectory& message,
                                                   const ClipShape& clip,
                                                   Violations& violations) {
  const std::size_t before = violations.size();
  const camera::PoseConventions conventions = parse_conventions(message, violations);
  const bool use_sent_times = check_times(message, violations);

  // A lens that is wrong is reported where it stands, once, and then a placeholder lets the rest be checked.
  const camera::Lens placeholder{1, 1, camera::Pinhole{1, 1, 0.5, 0.5}};
  std::optional<camera::Lens> shared;
  const bool no_lens_at_all =
      !message.has_lens() &&
      std::none_of(message.frames().begin(), message.frames().end(), [](const auto& frame) { return frame.has_lens(); });
  if (no_lens_at_all) {
    violations.add("trajectory.lens", "is required unless each frame has a lens");
    shared = placeholder;
  } else if (message.has_lens()) {
    shared = parse_lens(message.lens(), "trajectory.lens", clip, violations).value_or(placeholder);
  }

  camera::Trajectory trajectory;
  trajectory.frames.reserve(static_cast<std::size_t>(message.frames_size()));
  for (int i = 0; i < message.frames_size() && !violations.full(); ++i) {
    const v1::TrajectoryFrame& frame = message.frames(i);
    const std::string field = fmt::format("trajectory.frames[{}]", i);
    camera::TrajectoryFrame& out = trajectory.frames.emplace_back();
    if (const auto sent = parse_matrix(frame, field + ".pose", violations)) {
      out.c2w = camera::pose_from(*sent, conventions);
    }
    out.time_s = use_sent_times && frame.has_time_s() ? frame.time_s() : static_cast<double>(i) / clip.fps;
    if (frame.has_lens()) {
      out.lens = parse_lens(frame.lens(), field + ".lens", clip, violations).value_or(placeholder);
    } else if (shared) {
      out.lens = *shared;
    } else {
      out.lens = placeholder;
      violations.add(field + ".lens", "no lens here and none in trajectory.lens");
    }
  }

  // What the camera room knows to be wrong with poses and times, whatever convention they came in.
  violations.add_all("trajectory.", camera::validate(trajectory));
  if (violations.size() != before) {
    return std::nullopt;
  }
  for (camera::TrajectoryFrame& frame : trajectory.frames) {
    frame.c2w.rotation = camera::nearest_rotation(frame.c2w.rotation);
  }
  return trajectory;
}

v1::Trajectory serialize_trajectory(const camera::Trajectory& trajectory) {
  v1::Trajectory message;
  message.set_pose_direction(v1::POSE_DIRECTION_CAMERA_TO_WORLD);
  message.set_camera_axes(v1::CAMERA_AXES_OPENCV);
  message.set_length_unit(v1::LENGTH_UNIT_METRE);
  const auto& frames = trajectory.frames;
  const bool shared =
      !frames.empty() && std::all_of(frames.begin(), frames.end(), [&](const camera::TrajectoryFrame& frame) {
        return same_lens(frame.lens, frames.front().lens);
      });
  if (shared) {
    serialize_lens(frames.front().lens, *message.mutable_lens());
  }
  message.mutable_frames()->Reserve(static_cast<int>(frames.size()));
  for (const camera::TrajectoryFrame& frame : frames) {
    v1::TrajectoryFrame& out = *message.add_frames();
    out.mutable_pose()->Reserve(12);
    for (int row = 0; row < 3; ++row) {
      for (int column = 0; column < 3; ++column) {
        out.add_pose(frame.c2w.rotation(row, column));
      }
      out.add_pose(frame.c2w.centre(row));
    }
    out.set_time_s(frame.time_s);
    if (!shared) {
      serialize_lens(frame.lens, *out.mutable_lens());
    }
  }
  return message;
}

}  // namespace merope::wire
