// Noise levels of a flow-matching run: which sigmas the solver visits and which timesteps the model is told.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "proto/spec/generation_spec.h"

namespace merope::worker {

// The grid's name in a scheduler config: "unipc", "unipc_legacy", "wan_unipc", "wan_dpm", "euler".
std::string_view to_string(SigmaGrid grid);
std::optional<SigmaGrid> parse_sigma_grid(std::string_view name);

struct NoiseLevels {
  std::vector<float> sigmas;     // N + 1 values, falling; the last is 0. x = (1 - sigma) clean + sigma noise.
  std::vector<float> timesteps;  // N values, what the model is given. trunc(T sigma), kEuler: T sigma. They belong to the
                                 // sigmas only approximately, which models expect.
};

// kInvalidArgument when a number is not positive and finite, or when the steps are more than the training timesteps.
Result<NoiseLevels> make_noise_levels(SigmaGrid grid, int steps, double shift, int n_train_timesteps = 1000);

}  // namespace merope::worker
