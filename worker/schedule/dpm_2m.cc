#include "worker/schedule/dpm_2m.h"

#include <cmath>

#include "worker/schedule/half_log_snr.h"

namespace merope::worker {
namespace {

Term term(Operand operand, double factor) {
  return {operand, static_cast<float>(factor)};
}

// x' = s'/s x - a' expm1(-h) (m + (m - m_1) / (2 r)), r = (lambda - lambda_1) / h.
std::vector<Term> update(const std::vector<float>& sigmas, std::size_t i) {
  const float next = sigmas[i + 1];
  if (next == 0) {
    return {{Operand::kClean, 1.0F}};  // h is infinite: expm1(-h) = -1, alpha' = 1
  }
  const float lambda = half_log_snr(sigmas[i]);
  const float h = half_log_snr(next) - lambda;  // infinite where sigma is 1
  const double gain = -static_cast<double>(1.0F - next) * std::expm1(-h);
  const Term sample = term(Operand::kSample, next / sigmas[i]);
  const float r = i == 0 ? INFINITY : (lambda - half_log_snr(sigmas[i - 1])) / h;
  if (std::isinf(r) || std::isinf(h)) {
    return {sample, term(Operand::kClean, gain)};
  }
  return {sample, term(Operand::kClean, gain * (1 + 0.5 / r)), term(Operand::kClean1, -gain * (0.5 / r))};
}

}  // namespace

SamplingPlan plan_dpm_2m(const NoiseLevels& levels) {
  SamplingPlan plan;
  for (std::size_t i = 0; i < levels.timesteps.size(); ++i) {
    plan.push_back({.sigma = levels.sigmas[i],
                    .timestep = levels.timesteps[i],
                    .correction = {},
                    .prediction = update(levels.sigmas, i)});
  }
  return plan;
}

}  // namespace merope::worker
