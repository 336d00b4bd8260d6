#include "worker/pipeline/experts.h"

#include <ATen/ATen.h>

#include <stdexcept>

#include "core/base/check.h"
#include "core/base/log.h"
#include "worker/pipeline/free_memory.h"

namespace merope::worker {
namespace {

// Bytes that loading takes: what is not stored as the model computes is copied.
std::uint64_t bytes_to_load(const WeightSource& weights, at::Device device, at::ScalarType dtype) {
  std::uint64_t bytes = 0;
  for (const std::string& name : weights.names()) {
    try {
      const std::optional<at::Tensor> stored = weights.find(name);
      if (!device.is_cpu() || stored->scalar_type() != dtype) {
        bytes += static_cast<std::uint64_t>(stored->numel()) * at::elementSize(dtype);
      }
    } catch (const std::runtime_error&) {
      // A tensor that can not be used: loading will name it.
    }
  }
  return bytes;
}

Status check_together(const WanConfig& first, const WanConfig& second) {
  const auto refuse = [](const std::string& what) {
    return Error{ErrorCode::kDataLoss,
                 "transformer and transformer_2 have different " + what + ", so they can not share a clip"};
  };
  if (first.in_channels != second.in_channels || first.out_channels != second.out_channels) {
    return refuse("channels");
  }
  if (first.text_dim != second.text_dim) {
    return refuse("text_dim");
  }
  if (first.head_dim != second.head_dim || first.rope_max_seq_len != second.rope_max_seq_len) {
    return refuse("rotary tables");
  }
  if (first.camera && second.camera &&
      (first.camera->name != second.camera->name || first.camera->encoding != second.camera->encoding)) {
    return refuse("camera encodings");
  }
  return {};
}

}  // namespace

Result<Experts> Experts::load(std::vector<Member> members,
                              at::Device device,
                              at::ScalarType dtype,
                              ExpertResidency residency) {
  MEROPE_CHECK(members.size() == 1 || members.size() == 2, "a model has one transformer or two");
  Experts experts(std::move(members), device, dtype);
  if (experts.size() == 2) {
    MEROPE_RETURN_IF_ERROR(check_together(experts.members_[0].config, experts.members_[1].config));
    experts.one_resident_ = residency == ExpertResidency::kOne;
    if (residency == ExpertResidency::kAuto) {
      const std::uint64_t needed = bytes_to_load(*experts.members_[0].weights, device, dtype) +
                                   bytes_to_load(*experts.members_[1].weights, device, dtype);
      const std::optional<std::uint64_t> free = free_memory(device);
      // The rest is for activations.
      experts.one_resident_ = free && needed > *free / 10 * 8;
    }
    log::info("model of two transformers",
              {{"resident", experts.one_resident_ ? "one at a time" : "both"}, {"device", device.str()}});
  }
  // The first last: it is what the first job begins with.
  for (std::size_t i = experts.size(); i-- > 0;) {
    MEROPE_ASSIGN_OR_RETURN([[maybe_unused]] const WanDit* loaded, experts.use(i));
  }
  return experts;
}

Result<const WanDit*> Experts::use(std::size_t i) {
  MEROPE_CHECK(i < members_.size(), "no such transformer");
  if (!loaded_[i]) {
    if (one_resident_) {
      loaded_.assign(members_.size(), std::nullopt);
    }
    MEROPE_ASSIGN_OR_RETURN(WanDit dit, WanDit::load(members_[i].config, *members_[i].weights, device_, dtype_));
    loaded_[i] = std::move(dit);
  }
  return &*loaded_[i];
}

const CameraBranchConfig* Experts::camera() const {
  for (const Member& member : members_) {
    if (member.config.camera) {
      return &*member.config.camera;
    }
  }
  return nullptr;
}

}  // namespace merope::worker
