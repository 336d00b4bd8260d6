// The native part: ordinary RoPE over latent frame, column and row of a token.
#pragma once

#include <vector>

#include "core/camera/encoding/encoding_config.h"
#include "core/camera/pose.h"

namespace merope::camera {

struct NativeFrequencyTable {
  std::vector<double> time;  // rad per latent frame, [native_time / 2]
  std::vector<double> x;     // rad per column, [native_x / 2]
  std::vector<double> y;     // rad per row, [native_y / 2]
};

NativeFrequencyTable native_frequency_table(const EncodingConfig& config);

// Angles of a token at (latent frame, column, row), [native / 2] in the order of config.native_order.
std::vector<double> native_phases(const Vec3& position, const NativeFrequencyTable& table, NativeOrder order);

}  // namespace merope::camera
