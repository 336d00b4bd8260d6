// The time in which the exponential integrators (UniPC, DPM++) take their steps.
#pragma once

#include <cmath>

namespace merope::worker {

// lambda = log(alpha) - log(sigma), alpha = 1 - sigma: half the log of the signal-to-noise ratio, everything in fp32: near
// sigma = 1 the rounding of 1 - sigma is part of what the published numbers contain. Minus infinity at sigma = 1.
inline float half_log_snr(float sigma) {
  return std::log(1.0F - sigma) - std::log(sigma);
}

}  // namespace merope::worker
