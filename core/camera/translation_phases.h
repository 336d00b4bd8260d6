// The translation part: each axis of the query-frame displacement turns pairs of channels at several metric wavelengths
// (MeRoPE Eq. 7 and 8).
#pragma once

#include <vector>

#include "core/camera/pose.h"

namespace merope::camera {

// omega_k = 2 pi / lambda_k in rad/m, lambda_k from min to max in equal ratios, short to long.
std::vector<double> translation_frequencies(int n_wavelengths, double min_wavelength_m, double max_wavelength_m);

// Angles omega_k * delta_o, [3 * n_wavelengths]: axis outer, wavelength inner. In double: at 2 km a float would be off by
// 1e-3 rad.
std::vector<double> translation_phases(const Vec3& delta_o, const std::vector<double>& omega);

}  // namespace merope::camera
