#include "core/camera/native_phases.h"

#include <cmath>

namespace merope::camera {
namespace {

// The first n of the frequencies base^(-2m/width).
std::vector<double> geometric(int n, int width, double base) {
  std::vector<double> frequencies;
  for (int m = 0; m < n; ++m) {
    frequencies.push_back(std::pow(base, -2.0 * m / width));
  }
  return frequencies;
}

}  // namespace

NativeFrequencyTable native_frequency_table(const EncodingConfig& config) {
  const HeadPartition& p = config.partition;
  int time_width = p.native_time;
  int x_width = p.native_x;
  int y_width = p.native_y;
  if (config.native_frequencies == NativeFrequencies::kBackbonePrefix) {
    const int image_width = 2 * (config.backbone_head_dim / 6);
    time_width = config.backbone_head_dim - 2 * image_width;
    x_width = image_width;
    y_width = image_width;
  }
  return {geometric(p.native_time / 2, time_width, config.native_base),
          geometric(p.native_x / 2, x_width, config.native_base),
          geometric(p.native_y / 2, y_width, config.native_base)};
}

std::vector<double> native_phases(const Vec3& position, const NativeFrequencyTable& table, NativeOrder order) {
  std::vector<double> phases;
  phases.reserve(table.time.size() + table.x.size() + table.y.size());
  const auto append = [&](double coordinate, const std::vector<double>& frequencies) {
    for (const double frequency : frequencies) {
      phases.push_back(coordinate * frequency);
    }
  };
  append(position.x(), table.time);
  if (order == NativeOrder::kTimeXY) {
    append(position.y(), table.x);
    append(position.z(), table.y);
  } else {
    append(position.z(), table.y);
    append(position.y(), table.x);
  }
  return phases;
}

}  // namespace merope::camera
