// What one solver step does, as numbers: which of the tensors at hand are added up with which factors.
//
// A solver is turned into a list of steps before the first model call; applying a step is a few scaled sums that work on any
// device. With x the sample, v the model's velocity and sigma the step's noise level, the clean estimate is m = x - sigma v.
// Then x is replaced by the sum of `correction` (unless that is empty) and the next sample is the sum of `prediction`.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/check.h"

namespace merope::worker {

enum class Operand : std::uint8_t {
  kSample,          // x of this step, corrected where the step corrects
  kVelocity,        // v of this step
  kClean,           // m of this step (made from the uncorrected x)
  kClean1,          // m one step before
  kClean2,          // m two steps before
  kPreviousSample,  // x one step before, as corrected
};

struct Term {
  Operand operand;
  float factor;
};

struct SolverStep {
  float sigma = 0;
  float timestep = 0;  // for the model
  std::vector<Term> correction;
  std::vector<Term> prediction;
};

using SamplingPlan = std::vector<SolverStep>;

// Walks through a plan. Vector is at::Tensor or std::valarray<float>: anything with `v * float` and `v + v`. One run, one
// thread; keeps the last three clean estimates and one sample. The velocity must already have the sample's precision (fp32).
template <typename Vector>
class SolverRun {
 public:
  // The plan must outlive the run.
  explicit SolverRun(const SamplingPlan& plan) : plan_(plan) {}

  bool finished() const { return index_ == plan_.size(); }
  std::size_t index() const { return index_; }
  const SolverStep& step() const { return plan_[index_]; }

  // The sample for the next step, or after the last one the result.
  Vector advance(const Vector& sample, const Vector& velocity) {
    MEROPE_CHECK(!finished(), "the solver has taken its last step");
    const SolverStep& step = plan_[index_];
    clean2_ = std::move(clean1_);
    clean1_ = std::move(clean_);
    clean_ = sample + velocity * -step.sigma;
    sample_ = sample;
    velocity_ = velocity;
    if (!step.correction.empty()) {
      sample_ = sum(step.correction);
    }
    Vector next = sum(step.prediction);
    previous_sample_ = std::move(sample_);
    ++index_;
    return next;
  }

  // The model's idea of the noise-free sample at the step just taken: what a preview decodes.
  const Vector& clean_estimate() const { return clean_; }

 private:
  const Vector& operand(Operand which) const {
    switch (which) {
      case Operand::kSample: return sample_;
      case Operand::kVelocity: return velocity_;
      case Operand::kClean: return clean_;
      case Operand::kClean1: return clean1_;
      case Operand::kClean2: return clean2_;
      case Operand::kPreviousSample: return previous_sample_;
    }
    check_failed(__FILE__, __LINE__, "operand", "unknown operand");
  }

  Vector sum(const std::vector<Term>& terms) const {
    Vector total = operand(terms.front().operand) * terms.front().factor;
    for (std::size_t i = 1; i < terms.size(); ++i) {
      total = total + operand(terms[i].operand) * terms[i].factor;
    }
    return total;
  }

  const SamplingPlan& plan_;
  std::size_t index_ = 0;
  Vector sample_, velocity_, clean_, clean1_, clean2_, previous_sample_;
};

}  // namespace merope::worker
