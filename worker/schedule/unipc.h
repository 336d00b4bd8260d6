// UniPC (Zhao et al. 2023, "UniPC: A Unified Predictor-Corrector Framework"), order 1 or 2, the variant B_2(h) = expm1(-h)
// that predicts the clean sample, for the flow path alpha = 1 - sigma.
#pragma once

#include <vector>

#include "worker/schedule/flow_sigmas.h"
#include "worker/schedule/solver_step.h"

namespace merope::worker {

struct UniPcSettings {
  int order = 2;                       // 1 or 2
  std::vector<int> disable_corrector;  // the predictions of these steps are not corrected afterwards
};

// Weights of the second-order corrector for a step of -u = h in lambda, r = (lambda_{i-2} - lambda_{i-1}) / h < 0.
struct CorrectorWeights {
  float earlier = 0;  // of (m_{i-2} - m_{i-1}) / r
  float newest = 0;   // of m_i - m_{i-1}
};
CorrectorWeights corrector_weights(float r, float h);

// The first step and the last are of first order; the last lands on the clean estimate exactly.
SamplingPlan plan_unipc(const NoiseLevels& levels, const UniPcSettings& settings);

}  // namespace merope::worker
