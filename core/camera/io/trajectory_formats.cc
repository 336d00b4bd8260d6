#include "core/camera/io/trajectory_formats.h"

#include "core/camera/io/kitti.h"
#include "core/camera/io/merope_json.h"

namespace merope::camera {
namespace {

constexpr TrajectoryFormat kFormats[] = {
    {"json", "the project's own JSON: poses, times and lenses, conventions named", &parse_merope_json, &write_merope_json},
    {"kitti", "KITTI odometry poses: 12 numbers a line; needs a lens and a frame rate", &parse_kitti, &write_kitti},
};

std::string_view guess_format(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' ? "json" : "kitti";
}

}  // namespace

std::span<const TrajectoryFormat> trajectory_formats() {
  return kFormats;
}

Result<const TrajectoryFormat*> find_trajectory_format(std::string_view name) {
  std::string known;
  for (const TrajectoryFormat& format : kFormats) {
    if (format.name == name) {
      return &format;
    }
    known += (known.empty() ? "" : ", ") + std::string(format.name);
  }
  return invalid_argument("trajectory format '" + std::string(name) + "' is not one of " + known);
}

Result<Trajectory> parse_trajectory(std::string_view text, std::string_view format_name, const FormatDefaults& defaults) {
  MEROPE_ASSIGN_OR_RETURN(const TrajectoryFormat* format,
                          find_trajectory_format(format_name.empty() ? guess_format(text) : format_name));
  MEROPE_ASSIGN_OR_RETURN(Trajectory trajectory, format->parse(text, defaults));
  if (std::vector<FieldViolation> violations = validate(trajectory); !violations.empty()) {
    return invalid_fields(std::move(violations));
  }
  return trajectory;
}

}  // namespace merope::camera
