// Euler's method on the velocity: x' = x + (sigma' - sigma) v.
#pragma once

#include "worker/schedule/flow_sigmas.h"
#include "worker/schedule/solver_step.h"

namespace merope::worker {

SamplingPlan plan_euler(const NoiseLevels& levels);

}  // namespace merope::worker
