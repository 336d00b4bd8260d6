// From latents to pixels (patched).
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
struct UpStage {
  at::Tensor operator()(const at::Tensor& x, CausalCache& cache) const;

  std::vector<ResidualBlock> resnets;
  std::optional<Upsample> upsample;  // the last stage has none
  bool shortcut = false;
  std::int64_t out = 0;
  std::int64_t factor_t = 1;
};

class VaeDecoder {
 public:
  VaeDecoder(const VaeConfig& config, WeightReader& reader, CacheSlots& slots);

  // x: [B, z_dim, 1, h, w], the next latent frame. Returns [B, 3 patch^2, 1 or 4, H, W], not clamped.
  at::Tensor operator()(const at::Tensor& x, CausalCache& cache, const Probe& probe = {}) const;

 private:
  CausalConv3d conv_in_;
  MidBlock mid_;
  std::vector<UpStage> stages_;
  OutputHead head_;
};

}  // namespace merope::worker::vae
