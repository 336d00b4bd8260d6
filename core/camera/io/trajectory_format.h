// What a trajectory file format is: text in, trajectory out, and back. Axes and units are converted inside the format.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/camera/trajectory.h"

namespace merope::camera {

// What a file may lack.
struct FormatDefaults {
  std::optional<Lens> lens;   // for formats without lenses
  std::optional<double> fps;  // for formats without times
};

struct TrajectoryFormat {
  std::string_view name;         // "kitti": the value of a command line option
  std::string_view description;  // one line, for --help
  // A broken file gives a kInvalidArgument that names line or field. The poses are read as they stand: parse_trajectory()
  // validates them.
  Result<Trajectory> (*parse)(std::string_view text, const FormatDefaults& defaults);
  // What the format has no room for (lenses, times) is left out.
  std::string (*write)(const Trajectory& trajectory);
};

}  // namespace merope::camera
