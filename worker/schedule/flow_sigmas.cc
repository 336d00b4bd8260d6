#include "worker/schedule/flow_sigmas.h"

#include <cmath>
#include <string>

namespace merope::worker {
namespace {

double shifted(double sigma, double shift) {
  return shift * sigma / (1 + (shift - 1) * sigma);
}

float shifted(float sigma, float shift) {
  return shift * sigma / (1 + (shift - 1) * sigma);
}

// The arithmetic follows the order of operations of the published code in double precision: a timestep is truncated, so an
// ulp decides between two integers where T sigma is whole.
std::vector<double> unrounded_sigmas(SigmaGrid grid, int steps, double shift, int n_train) {
  const double n = steps;
  const double smallest = 1.0 / n_train;
  std::vector<double> sigmas;
  for (int i = 0; i < steps; ++i) {
    switch (grid) {
      case SigmaGrid::kUniPc: sigmas.push_back(i * ((smallest - 1.0) / n) + 1.0); break;
      case SigmaGrid::kUniPcLegacy:
        sigmas.push_back(1.0 - (i == 0 ? smallest : (steps - i) * ((smallest - 1.0) / n) + 1.0));
        break;
      case SigmaGrid::kWanUniPc: {
        const double largest = static_cast<float>(1.0 - smallest);
        sigmas.push_back(i * (-largest / n) + largest);
        break;
      }
      case SigmaGrid::kWanDpm: sigmas.push_back(i * (-1.0 / n) + 1.0); break;
      case SigmaGrid::kEuler: {
        const float last = shifted(1.0F / static_cast<float>(n_train), static_cast<float>(shift));
        sigmas.push_back(steps == 1 ? 1.0 : 1.0 + i * ((static_cast<double>(last) - 1.0) / (n - 1)));
        break;
      }
    }
  }
  for (double& sigma : sigmas) {
    sigma = shifted(sigma, shift);
  }
  constexpr double kBelowOne = 1e-6;
  if (grid == SigmaGrid::kUniPc && std::abs(sigmas.front() - 1.0) < kBelowOne) {
    sigmas.front() -= kBelowOne;  // log(1 - sigma) must stay finite
  }
  return sigmas;
}

}  // namespace

std::string_view to_string(SigmaGrid grid) {
  switch (grid) {
    case SigmaGrid::kUniPc: return "unipc";
    case SigmaGrid::kUniPcLegacy: return "unipc_legacy";
    case SigmaGrid::kWanUniPc: return "wan_unipc";
    case SigmaGrid::kWanDpm: return "wan_dpm";
    case SigmaGrid::kEuler: return "euler";
  }
  return "unknown";
}

std::optional<SigmaGrid> parse_sigma_grid(std::string_view name) {
  for (const SigmaGrid grid :
       {SigmaGrid::kUniPc, SigmaGrid::kUniPcLegacy, SigmaGrid::kWanUniPc, SigmaGrid::kWanDpm, SigmaGrid::kEuler}) {
    if (to_string(grid) == name) {
      return grid;
    }
  }
  return std::nullopt;
}

Result<NoiseLevels> make_noise_levels(SigmaGrid grid, int steps, double shift, int n_train_timesteps) {
  if (n_train_timesteps < 2) {
    return invalid_argument("num_train_timesteps is " + std::to_string(n_train_timesteps) + ", it must be at least 2");
  }
  if (steps < 1 || steps > n_train_timesteps) {
    return invalid_argument("steps is " + std::to_string(steps) + ", it must be 1 to " + std::to_string(n_train_timesteps));
  }
  if (!std::isfinite(shift) || shift <= 0) {
    return invalid_argument("shift is " + std::to_string(shift) + ", it must be positive and finite");
  }
  NoiseLevels levels;
  for (const double sigma : unrounded_sigmas(grid, steps, shift, n_train_timesteps)) {
    const auto rounded = static_cast<float>(sigma);
    levels.sigmas.push_back(rounded);
    levels.timesteps.push_back(grid == SigmaGrid::kEuler ? rounded * static_cast<float>(n_train_timesteps)
                                                         : static_cast<float>(std::trunc(sigma * n_train_timesteps)));
  }
  levels.sigmas.push_back(0.0F);
  return levels;
}

}  // namespace merope::worker
