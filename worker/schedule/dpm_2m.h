// DPM-Solver++ (Lu et al. 2022, "DPM-Solver++: Fast Solver for Guided Sampling"), the multistep variant of second order (2M,
// midpoint) that predicts the clean sample, for the flow path alpha = 1 - sigma.
#pragma once

#include "worker/schedule/flow_sigmas.h"
#include "worker/schedule/solver_step.h"

namespace merope::worker {

// The first step and the last are of first order; the last lands on the clean estimate exactly. A grid may start at
// sigma = 1, where lambda is minus infinity: then the step after has no usable predecessor and is of first order too.
SamplingPlan plan_dpm_2m(const NoiseLevels& levels);

}  // namespace merope::worker
