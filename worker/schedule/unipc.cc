#include "worker/schedule/unipc.h"

#include <algorithm>
#include <cmath>

#include "worker/schedule/half_log_snr.h"

namespace merope::worker {
namespace {

Term term(Operand operand, double factor) {
  return {operand, static_cast<float>(factor)};
}

// x_{i+1} = s'/s x - a' E (m + [order 2] (m_1 - m) / (2 r)), E = expm1(-h).
std::vector<Term> predictor(const std::vector<float>& sigmas, std::size_t i, int order) {
  const float next = sigmas[i + 1];
  if (next == 0) {
    return {{Operand::kClean, 1.0F}};  // h is infinite: E = -1, alpha' = 1
  }
  const float lambda = half_log_snr(sigmas[i]);
  const float h = half_log_snr(next) - lambda;
  const double gain = -static_cast<double>(1.0F - next) * std::expm1(-h);
  const Term sample = term(Operand::kSample, next / sigmas[i]);
  if (order == 1) {
    return {sample, term(Operand::kClean, gain)};
  }
  const float r = (half_log_snr(sigmas[i - 1]) - lambda) / h;
  return {sample, term(Operand::kClean, gain * (1 - 0.5 / r)), term(Operand::kClean1, gain * (0.5 / r))};
}

// Repeats the step from i-1 to i now that the estimate m at i is known.
std::vector<Term> corrector(const std::vector<float>& sigmas, std::size_t i, int order) {
  const float lambda_before = half_log_snr(sigmas[i - 1]);
  const float h = half_log_snr(sigmas[i]) - lambda_before;
  const double gain = -static_cast<double>(1.0F - sigmas[i]) * std::expm1(-h);
  const Term sample = term(Operand::kPreviousSample, sigmas[i] / sigmas[i - 1]);
  if (order == 1) {
    return {sample, term(Operand::kClean1, gain * 0.5), term(Operand::kClean, gain * 0.5)};
  }
  const float r = (half_log_snr(sigmas[i - 2]) - lambda_before) / h;
  const CorrectorWeights weights = corrector_weights(r, h);
  const double earlier = static_cast<double>(weights.earlier) / r;
  return {sample,
          term(Operand::kClean1, gain * (1 - earlier - weights.newest)),
          term(Operand::kClean2, gain * earlier),
          term(Operand::kClean, gain * weights.newest)};
}

}  // namespace

CorrectorWeights corrector_weights(float r, float h) {
  // Solves [1 1; r 1] (earlier, newest) = (b1, b2).
  const float u = -h;
  const float e = std::expm1(u);
  const float phi1 = e / u - 1;
  const float b1 = phi1 / e;
  const float b2 = 2 * (phi1 / u - 0.5F) / e;
  const float earlier = (b1 - b2) / (1 - r);
  return {earlier, b1 - earlier};
}

SamplingPlan plan_unipc(const NoiseLevels& levels, const UniPcSettings& settings) {
  MEROPE_CHECK(levels.sigmas.front() < 1, "UniPC cannot start from sigma = 1, where lambda is infinite");
  const std::size_t steps = levels.timesteps.size();
  const auto& disabled = settings.disable_corrector;
  SamplingPlan plan;
  int order_before = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    SolverStep step;
    step.sigma = levels.sigmas[i];
    step.timestep = levels.timesteps[i];
    if (i > 0 && std::find(disabled.begin(), disabled.end(), static_cast<int>(i) - 1) == disabled.end()) {
      step.correction = corrector(levels.sigmas, i, order_before);
    }
    const bool ends_at_first_order = i == 0 || i + 1 == steps;
    order_before = ends_at_first_order ? 1 : settings.order;
    step.prediction = predictor(levels.sigmas, i, order_before);
    plan.push_back(std::move(step));
  }
  return plan;
}

}  // namespace merope::worker
