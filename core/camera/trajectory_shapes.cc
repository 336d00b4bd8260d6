#include "core/camera/trajectory_shapes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "core/camera/internal/number_text.h"

namespace merope::camera {
namespace {

constexpr double kDefaultTurnRadiusM = 15;
constexpr double kDefaultLaneRatio = 8;  // road length per metre of offset
constexpr double kMaxLengthM = 1e5;
constexpr double kMaxAngleRad = 100 * std::numbers::pi;

// A piece of road, flat on the xz-plane.
struct Segment {
  double length_m = 0;                  // along the path
  std::function<Pose(double)> pose_at;  // from the distance travelled, relative to the start of the segment
};

// Heading turned to the left by an angle: about y, which points down.
Mat3 turned_left(double angle_rad) {
  const double c = std::cos(angle_rad);
  const double s = std::sin(angle_rad);
  Mat3 rotation;
  rotation << c, 0, -s, 0, 1, 0, s, 0, c;
  return rotation;
}

Segment straight(double distance_m) {
  const double sign = distance_m < 0 ? -1 : 1;
  return {std::abs(distance_m), [sign](double s) { return Pose{Mat3::Identity(), Vec3(0, 0, sign * s)}; }};
}

Segment turn(double angle_rad, double length_m) {
  if (angle_rad == 0) {
    return straight(length_m);
  }
  const double radius_m = length_m / angle_rad;  // of the left bend; negative: to the right
  return {length_m, [radius_m](double s) {
            const double angle = s / radius_m;
            return Pose{turned_left(angle), Vec3(-radius_m * (1 - std::cos(angle)), 0, radius_m * std::sin(angle))};
          }};
}

Segment orbit(double angle_rad, double radius_m) {
  const double sign = angle_rad < 0 ? -1 : 1;
  return {std::abs(angle_rad) * radius_m, [sign, radius_m](double s) {
            const double angle = sign * s / radius_m;
            const Mat3 rotation = turned_left(angle);
            return Pose{rotation, Vec3(0, 0, radius_m) - rotation * Vec3(0, 0, radius_m)};
          }};
}

// Sideways offset as a fraction of the whole, and its derivative: heading and curvature are continuous at both ends.
double lane_offset(double t) {
  return t * t * t * (10 + t * (-15 + 6 * t));
}
double lane_slope(double t) {
  return 30 * t * t * (1 - t) * (1 - t);
}

Segment lane(double offset_m, double road_m) {
  // Distance travelled up to each of equally spaced stations of the road, by Simpson's rule.
  constexpr int kStations = 512;
  std::vector<double> travelled(kStations + 1, 0.0);
  const double step_m = road_m / kStations;
  const auto speed = [=](double t) { return std::hypot(1.0, offset_m / road_m * lane_slope(t)); };
  for (int i = 0; i < kStations; ++i) {
    const double t = static_cast<double>(i) / kStations;
    const double sum = speed(t) + 4 * speed(t + 0.5 / kStations) + speed(t + 1.0 / kStations);
    travelled[i + 1] = travelled[i] + step_m * sum / 6;
  }
  return {travelled.back(), [=](double s) {
            const auto above = std::upper_bound(travelled.begin() + 1, travelled.end() - 1, s);
            const auto station = static_cast<double>(above - travelled.begin() - 1);
            const double within = (s - *(above - 1)) / (*above - *(above - 1));
            const double t = std::clamp((station + within) / kStations, 0.0, 1.0);
            const double heading = std::atan(offset_m / road_m * lane_slope(t));
            return Pose{turned_left(heading), Vec3(-offset_m * lane_offset(t), 0, road_m * t)};
          }};
}

enum class Kind { kLength, kAngle };

// A number with its unit, in metres or radians.
Result<double> quantity(std::string_view text, Kind kind) {
  double factor = 1;
  std::string_view number = text;
  const auto ends_with_unit = [&](std::string_view unit, double unit_factor) {
    if (!text.ends_with(unit)) {
      return false;
    }
    number.remove_suffix(unit.size());
    factor = unit_factor;
    return true;
  };
  if (kind == Kind::kAngle) {
    if (!ends_with_unit("deg", std::numbers::pi / 180) && !ends_with_unit("rad", 1)) {
      return invalid_argument("'" + std::string(text) + "' is not an angle such as 30deg or 0.5rad");
    }
  } else if (text.ends_with("rad") || !ends_with_unit("m", 1)) {
    return invalid_argument("'" + std::string(text) + "' is not a length such as 20m");
  }
  const std::optional<double> value = internal::parse_number(number);
  if (!value || !std::isfinite(*value)) {
    return invalid_argument("'" + std::string(number) + "' is not a number");
  }
  const double limit = kind == Kind::kAngle ? kMaxAngleRad : kMaxLengthM;
  if (std::abs(*value * factor) > limit) {
    return invalid_argument("'" + std::string(text) + "' is more than " +
                            (kind == Kind::kAngle ? "18000deg" : internal::shortest(kMaxLengthM) + "m"));
  }
  return *value * factor;
}

Result<double> positive_length(std::string_view text) {
  MEROPE_ASSIGN_OR_RETURN(const double length_m, quantity(text, Kind::kLength));
  if (length_m <= 0) {
    return invalid_argument("'" + std::string(text) + "' is not a positive length");
  }
  return length_m;
}

Result<Segment> parse_segment(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return invalid_argument("has no ':'; segments are straight:20m, turn:30deg, lane:3.5m, orbit:90deg/10m");
  }
  const std::string_view name = text.substr(0, colon);
  std::string_view first = text.substr(colon + 1);
  std::optional<std::string_view> second;
  if (const std::size_t slash = first.find('/'); slash != std::string_view::npos) {
    second = first.substr(slash + 1);
    first = first.substr(0, slash);
  }
  if (name == "straight") {
    if (second) {
      return invalid_argument("straight takes one length");
    }
    MEROPE_ASSIGN_OR_RETURN(const double distance_m, quantity(first, Kind::kLength));
    return straight(distance_m);
  }
  if (name == "turn") {
    MEROPE_ASSIGN_OR_RETURN(const double angle_rad, quantity(first, Kind::kAngle));
    double length_m = kDefaultTurnRadiusM * std::abs(angle_rad);
    if (second) {
      MEROPE_ASSIGN_OR_RETURN(length_m, positive_length(*second));
    }
    return turn(angle_rad, length_m);
  }
  if (name == "lane") {
    MEROPE_ASSIGN_OR_RETURN(const double offset_m, quantity(first, Kind::kLength));
    double road_m = kDefaultLaneRatio * std::abs(offset_m);
    if (second) {
      MEROPE_ASSIGN_OR_RETURN(road_m, positive_length(*second));
    }
    return offset_m == 0 ? straight(road_m) : lane(offset_m, road_m);
  }
  if (name == "orbit") {
    if (!second) {
      return invalid_argument("orbit needs a radius, as in orbit:90deg/10m");
    }
    MEROPE_ASSIGN_OR_RETURN(const double angle_rad, quantity(first, Kind::kAngle));
    MEROPE_ASSIGN_OR_RETURN(const double radius_m, positive_length(*second));
    return orbit(angle_rad, radius_m);
  }
  return invalid_argument("'" + std::string(name) + "' is not one of straight, turn, lane, orbit");
}

Result<std::vector<Segment>> parse_segments(std::string_view expression) {
  std::vector<Segment> segments;
  std::string_view rest = expression;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::string_view text = rest.substr(0, comma);
    Result<Segment> segment = parse_segment(text);
    if (!segment) {
      return invalid_argument("segment " + std::to_string(segments.size() + 1) + " '" + std::string(text) +
                              "': " + segment.error().message);
    }
    segments.push_back(*std::move(segment));
    rest.remove_prefix(more ? comma + 1 : rest.size());
  }
  return segments;
}

Pose composed(const Pose& outer, const Pose& inner) {
  return {outer.rotation * inner.rotation, outer.rotation * inner.centre + outer.centre};
}

}  // namespace

Result<Trajectory> trajectory_from_shape(std::string_view expression, int n_frames, double fps, const Lens& lens) {
  if (n_frames < 1) {
    return invalid_argument(std::to_string(n_frames) + " frames: at least one is needed");
  }
  if (!std::isfinite(fps) || fps <= 0) {
    return invalid_argument("fps " + internal::shortest(fps) + " is not positive");
  }
  MEROPE_ASSIGN_OR_RETURN(const std::vector<Segment> segments, parse_segments(expression));
  double total_m = 0;
  for (const Segment& segment : segments) {
    total_m += segment.length_m;
  }

  Trajectory trajectory;
  trajectory.frames.reserve(static_cast<std::size_t>(n_frames));
  Pose start;  // of the current segment
  double start_m = 0;
  std::size_t current = 0;
  for (int i = 0; i < n_frames; ++i) {
    const double s = n_frames == 1 ? 0 : total_m * i / (n_frames - 1);
    while (current + 1 < segments.size() && s >= start_m + segments[current].length_m) {
      start = composed(start, segments[current].pose_at(segments[current].length_m));
      start_m += segments[current].length_m;
      ++current;
    }
    const double within_m = std::min(s - start_m, segments[current].length_m);
    trajectory.frames.push_back({composed(start, segments[current].pose_at(within_m)), i / fps, lens});
  }
  return trajectory;
}

}  // namespace merope::camera
