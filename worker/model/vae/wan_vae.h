// The Wan video autoencoder (2.1 and 2.2): RGB frames to latents and back, in time order and a few frames at a time.
//
// It is causal. Frame 0 makes latent frame 0, frames 4j-3 .. 4j make latent frame j, and what comes later never changes what
// came before: the first k latents of a clip are the latents of its first 4k-3 frames.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "worker/model/probe.h"
#include "worker/model/vae/causal_conv.h"
#include "worker/model/vae/tiling.h"
#include "worker/model/vae/vae_config.h"
#include "worker/model/weight_source.h"

namespace merope::worker {

namespace vae {
struct VaeParts;
}  // namespace vae

// Weights and functions. Immutable; one thread at a time, since ATen's CPU operators use one thread pool. Errors of shapes
// are c10::Error. Latents are normalised everywhere in this interface, fp32 in and out; pixels are fp32 in [-1, 1].
class WanVae {
 public:
  // Reads every tensor of the autoencoder and refuses a source with missing, superfluous or broken ones (kDataLoss).
  static Result<WanVae> load(const VaeConfig& config, const WeightSource& weights, at::Device device, at::ScalarType dtype);

  // frames: [1, 3, 4n+1, H, W], H and W multiples of config().spatial_scale(). Returns the mean of the latent distribution,
  // normalised: [1, z_dim, n+1, h, w].
  at::Tensor encode(const at::Tensor& frames, std::optional<VaeTiling> tiling = {}) const;

  // latents: [1, z_dim, n+1, h, w], normalised. Returns [1, 3, 4n+1, H, W]. Holds the whole clip; StreamingVaeDecoder
  // doesn't.
  at::Tensor decode(const at::Tensor& latents, std::optional<VaeTiling> tiling = {}) const;

  // Per channel (z - mean) / std, the scale in which latents are generated, and its inverse. [B, z_dim, f, h, w], fp32.
  at::Tensor normalise(const at::Tensor& z) const;
  at::Tensor denormalise(const at::Tensor& latents) const;

  const VaeConfig& config() const { return config_; }
  at::Device device() const { return device_; }
  at::ScalarType dtype() const { return dtype_; }

 private:
  friend class StreamingVaeEncoder;
  friend class StreamingVaeDecoder;
  WanVae(const VaeConfig& config, WeightReader& reader);

  VaeConfig config_;
  at::Device device_;
  at::ScalarType dtype_;
  at::Tensor mean_, inverse_std_;  // [1, z_dim, 1, 1, 1] fp32
  std::shared_ptr<const vae::VaeParts> parts_;
};

// Encodes a clip chunk by chunk. The WanVae must outlive it. One thread at a time. An exception from it ends the clip:
// begin() again.
class StreamingVaeEncoder {
 public:
  explicit StreamingVaeEncoder(const WanVae& model, std::optional<VaeTiling> tiling = {}) : model_(model), tiling_(tiling) {}

  // Forgets the clip; the next frames start a new one.
  void begin() { clip_.reset(); }

  // The next frames of the clip: one the first time, then four. [1, 3, 1 or 4, H, W] -> [1, z_dim, 1, h, w], normalised.
  at::Tensor encode_frames(const at::Tensor& frames, const Probe& probe = {});

  // The same before normalisation: mean and log-variance, [1, 2 z_dim, 1, h, w] in the model's dtype.
  at::Tensor moments(const at::Tensor& frames, const Probe& probe = {});

 private:
  const WanVae& model_;
  std::optional<VaeTiling> tiling_;
  std::optional<vae::ClipState> clip_;  // of the clip that has begun
};

// Decodes a clip one latent frame at a time. What it remembers does not grow with the clip. The WanVae must outlive it. One
// thread at a time. An exception from decode_latent_frame ends the clip: begin() again.
class StreamingVaeDecoder {
 public:
  explicit StreamingVaeDecoder(const WanVae& model, std::optional<VaeTiling> tiling = {}) : model_(model), tiling_(tiling) {}

  // Forgets the clip; the next latent frame starts a new one.
  void begin() { clip_.reset(); }

  // The next latent frame, normalised, [1, z_dim, 1, h, w]. Returns its RGB frames, [1, 3, 1, H, W] for the first latent
  // frame and [1, 3, 4, H, W] for every later one, fp32 clamped to [-1, 1], channels last in memory.
  at::Tensor decode_latent_frame(const at::Tensor& latent, const Probe& probe = {});

  // Memory held between calls.
  std::int64_t cache_bytes() const;

 private:
  const WanVae& model_;
  std::optional<VaeTiling> tiling_;
  std::optional<vae::ClipState> clip_;  // of the clip that has begun
};

}  // namespace merope::worker
