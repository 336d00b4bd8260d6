#include "core/camera/translation_phases.h"

#include <cmath>
#include <numbers>

namespace merope::camera {

std::vector<double> translation_frequencies(int n_wavelengths, double min_wavelength_m, double max_wavelength_m) {
  std::vector<double> omega;
  for (int k = 0; k < n_wavelengths; ++k) {
    const double exponent = n_wavelengths == 1 ? 0.0 : static_cast<double>(k) / (n_wavelengths - 1);
    omega.push_back(2 * std::numbers::pi / (min_wavelength_m * std::pow(max_wavelength_m / min_wavelength_m, exponent)));
  }
  return omega;
}

std::vector<double> translation_phases(const Vec3& delta_o, const std::vector<double>& omega) {
  std::vector<double> phases;
  phases.reserve(3 * omega.size());
  for (int axis = 0; axis < 3; ++axis) {
    for (const double w : omega) {
      phases.push_back(w * delta_o(axis));
    }
  }
  return phases;
}

}  // namespace merope::camera
