// The transformers of a model: one, or two of which the second takes over at low noise levels.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "worker/model/wan_dit.h"
#include "worker/model/weight_source.h"
#include "worker/pipeline/expert_residency.h"

namespace merope::worker {

// One thread at a time.
class Experts {
 public:
  struct Member {
    WanConfig config;
    std::unique_ptr<const WeightSource> weights;
  };

  // members: one or two, the one for high noise levels first. Every tensor of every member is checked here, also of one that
  // is not kept. Errors as of WanDit::load; kDataLoss when two members do not fit together.
  static Result<Experts> load(std::vector<Member> members,
                              at::Device device,
                              at::ScalarType dtype,
                              ExpertResidency residency = ExpertResidency::kAuto);

  std::size_t size() const { return members_.size(); }
  // The i-th transformer, loaded if need be. Where one is resident at a time the other is let go of first, and what points
  // to it is invalid. An exception (no memory) leaves none loaded; the next call tries again.
  Result<const WanDit*> use(std::size_t i);

  // Shape of latents, text and tokens, alike for all members.
  const WanConfig& config() const { return members_.front().config; }
  // The camera branch of the member that has one; two branches share their encoding. Null without any.
  const CameraBranchConfig* camera() const;
  at::Device device() const { return device_; }
  bool one_resident() const { return one_resident_; }

 private:
  Experts(std::vector<Member> members, at::Device device, at::ScalarType dtype)
      : members_(std::move(members)), loaded_(members_.size()), device_(device), dtype_(dtype) {}

  std::vector<Member> members_;
  std::vector<std::optional<WanDit>> loaded_;
  at::Device device_;
  at::ScalarType dtype_;
  bool one_resident_ = false;
};

}  // namespace merope::worker
