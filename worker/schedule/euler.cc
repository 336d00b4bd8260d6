#include "worker/schedule/euler.h"

namespace merope::worker {

SamplingPlan plan_euler(const NoiseLevels& levels) {
  SamplingPlan plan;
  for (std::size_t i = 0; i < levels.timesteps.size(); ++i) {
    plan.push_back(
        {.sigma = levels.sigmas[i],
         .timestep = levels.timesteps[i],
         .correction = {},
         .prediction = {{Operand::kSample, 1.0F}, {Operand::kVelocity, levels.sigmas[i + 1] - levels.sigmas[i]}}});
  }
  return plan;
}

}  // namespace merope::worker
