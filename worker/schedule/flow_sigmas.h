// Noise levels of a flow-matching run: which sigmas the solver visits and which timesteps the model is told.
#pragma once

#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace merope::worker {

// Published pipelines space the N sigmas differently; with few steps the difference is visible, so each spacing has a name.
// shift(s) = k s / (1 + (k - 1) s), k the shift; i = 0 .. N-1; T the number of training timesteps (1000).
enum class SigmaGrid {
  kUniPc,        // shift(1 - (1 - 1/T) i/N), the first lowered from 1 to 1 - 1e-6: diffusers' UniPC since 0.37
  kUniPcLegacy,  // shift((1 - 1/T)(1 - i/N)): diffusers' UniPC up to 0.36
  kWanUniPc,     // kUniPcLegacy with 1 - 1/T rounded to fp32 first: the original Wan code
  kWanDpm,       // shift(1 - i/N): the original Wan code's dpm++ option. Its first sigma is 1, which UniPC cannot start from
  kEuler,        // shift(linspace(1, shift(1/T), N)): diffusers' flow-match Euler, whose last sigma is shifted twice
};

std::string_view to_string(SigmaGrid grid);

struct NoiseLevels {
  std::vector<float> sigmas;     // N + 1 values, falling; the last is 0. x = (1 - sigma) clean + sigma noise.
  std::vector<float> timesteps;  // N values, what the model is given. trunc(T sigma), kEuler: T sigma. They belong to the
                                 // sigmas only approximately, which models expect.
};

// kInvalidArgument when a number is not positive and finite, or when the steps are more than the training timesteps.
Result<NoiseLevels> make_noise_levels(SigmaGrid grid, int steps, double shift, int n_train_timesteps = 1000);

}  // namespace merope::worker
