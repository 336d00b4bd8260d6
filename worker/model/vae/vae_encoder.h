// From pixels (patched) to the moments of the latent distribution.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "worker/model/probe.h"
#include "worker/model/vae/resample.h"
#include "worker/model/vae/vae_blocks.h"
#include "worker/model/vae/vae_config.h"

namespace merope::worker::vae {

// Residual blocks of one resolution and the way to the next one; in the residual kind with a shortcut around all of it.
struct DownStage {
  at::Tensor operator()(const at::Tensor& x, CausalCache& cache, const Probe& probe) const;

  // Where the checkpoint's list "down_blocks" has this stage: one entry in the residual kind, one per layer in the plain
  // kind.
  std::int64_t first_index = 0;
  std::vector<ResidualBlock> resnets;
  std::optional<Downsample> downsample;  // the last stage has none
  bool shortcut = false;
  std::int64_t out = 0;
  std::int64_t factor_t = 1;
  std::int64_t factor_s = 1;
};

class VaeEncoder {
 public:
  VaeEncoder(const VaeConfig& config, WeightReader& reader, CacheSlots& slots);

  // x: [B, 3 patch^2, T, H, W], the next chunk of the clip: one frame, later four. Returns [B, 2 z_dim, 1, h, w].
  at::Tensor operator()(const at::Tensor& x, CausalCache& cache, const Probe& probe = {}) const;

 private:
  CausalConv3d conv_in_;
  std::vector<DownStage> stages_;
  MidBlock mid_;
  OutputHead head_;
};

}  // namespace merope::worker::vae
