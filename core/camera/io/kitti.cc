#include "core/camera/io/kitti.h"

#include <cmath>

#include "core/camera/internal/number_text.h"
#include "core/camera/pose_conventions.h"

namespace merope::camera {
namespace {

constexpr std::string_view kBlanks = " \t\r";

Error bad_line(int line, const std::string& what) {
  return invalid_argument("line " + std::to_string(line) + ": " + what);
}

// A word as it may stand in a message.
std::string quoted(std::string_view word) {
  return "'" + std::string(word.substr(0, 32)) + (word.size() > 32 ? "...'" : "'");
}

Result<Matrix34> parse_line(std::string_view text, int line) {
  Matrix34 matrix;
  int n = 0;
  for (std::size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const std::optional<double> value = internal::parse_number(word);
    if (!value) {
      return bad_line(line, "number " + std::to_string(n + 1) + ": " + quoted(word) + " is not a number");
    }
    if (!std::isfinite(*value)) {
      return bad_line(line, "number " + std::to_string(n + 1) + ": " + quoted(word) + " is not finite");
    }
    if (n < 12) {
      matrix(n / 4, n % 4) = *value;
    }
    ++n;
    begin = text.find_first_not_of(kBlanks, end);
  }
  if (n != 12) {
    return bad_line(line, std::to_string(n) + " numbers, a pose has 12");
  }
  return matrix;
}

}  // namespace

Result<Trajectory> parse_kitti(std::string_view text, const FormatDefaults& defaults) {
  if (!defaults.lens) {
    return invalid_argument("a KITTI pose file has no lens: one must be given with it");
  }
  if (!defaults.fps) {
    return invalid_argument("a KITTI pose file has no times: a frame rate must be given with it");
  }
  Trajectory trajectory;
  int line = 0;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::string_view content = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    ++line;
    if (content.find_first_not_of(kBlanks) == std::string_view::npos) {
      continue;
    }
    MEROPE_ASSIGN_OR_RETURN(const Matrix34 matrix, parse_line(content, line));
    const double time_s = static_cast<double>(trajectory.frames.size()) / *defaults.fps;
    trajectory.frames.push_back({pose_from(matrix, PoseConventions{}), time_s, *defaults.lens});
  }
  if (trajectory.frames.empty()) {
    return invalid_argument("the file holds no pose");
  }
  return trajectory;
}

std::string write_kitti(const Trajectory& trajectory) {
  std::string text;
  for (const TrajectoryFrame& frame : trajectory.frames) {
    for (int row = 0; row < 3; ++row) {
      for (int column = 0; column < 4; ++column) {
        const double value = column < 3 ? frame.c2w.rotation(row, column) : frame.c2w.centre(row);
        text += internal::shortest(value);
        text += row == 2 && column == 3 ? '\n' : ' ';
      }
    }
  }
  return text;
}

}  // namespace merope::camera
