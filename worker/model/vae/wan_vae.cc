#include "worker/model/vae/wan_vae.h"

#include <ATen/ATen.h>

#include "worker/model/vae/vae_decoder.h"
#include "worker/model/vae/vae_encoder.h"

namespace merope::worker {

namespace vae {

// The members are read in this order; each half has its own cache.
struct VaeParts {
  VaeParts(const VaeConfig& config, WeightReader& reader)
      : encoder(config, reader, encoder_slots),
        quant_conv(reader, "quant_conv", 2 * config.z_dim, 2 * config.z_dim, {1, 1, 1}),
        post_quant_conv(reader, "post_quant_conv", config.z_dim, config.z_dim, {1, 1, 1}),
        decoder(config, reader, decoder_slots) {}

  CacheSlots encoder_slots, decoder_slots;
  VaeEncoder encoder;
  PointwiseConv quant_conv;
  PointwiseConv post_quant_conv;
  VaeDecoder decoder;
};

}  // namespace vae

namespace {

at::Tensor per_channel(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).to(at::kFloat).view({1, -1, 1, 1, 1});
}

// The clip that has begun, or a new one of h x w latent positions.
vae::ClipState& continue_clip(std::optional<vae::ClipState>& clip,
                              std::int64_t h,
                              std::int64_t w,
                              const std::optional<VaeTiling>& tiling,
                              const vae::CacheSlots& slots) {
  if (!clip) {
    clip.emplace(vae::TileGrid(h, w, tiling), slots);
  }
  TORCH_CHECK(clip->grid.h == h && clip->grid.w == w,
              "the clip began with ",
              clip->grid.h,
              " x ",
              clip->grid.w,
              " latent positions and goes on with ",
              h,
              " x ",
              w);
  return *clip;
}

}  // namespace

WanVae::WanVae(const VaeConfig& config, WeightReader& reader)
    : config_(config),
      device_(reader.device()),
      dtype_(reader.dtype()),
      // The inverse is rounded to fp32 once, as the published pipelines do, and used for both directions.
      mean_(per_channel(config.latents_mean).to(device_)),
      inverse_std_(per_channel(config.latents_std).reciprocal().to(device_)),
      parts_(std::make_shared<const vae::VaeParts>(config, reader)) {}

Result<WanVae> WanVae::load(const VaeConfig& config, const WeightSource& weights, at::Device device, at::ScalarType dtype) {
  WeightReader reader(weights, device, dtype);
  WanVae model(config, reader);
  MEROPE_RETURN_IF_ERROR(reader.finish());
  return model;
}

at::Tensor WanVae::normalise(const at::Tensor& z) const {
  return (z - mean_) * inverse_std_;
}

at::Tensor WanVae::denormalise(const at::Tensor& latents) const {
  return latents / inverse_std_ + mean_;
}

at::Tensor WanVae::encode(const at::Tensor& frames, std::optional<VaeTiling> tiling) const {
  TORCH_CHECK(frames.dim() == 5 && frames.size(2) % kTemporalScale == 1,
              "the frame count of a clip to encode must be 4n+1, its shape is ",
              frames.sizes());
  StreamingVaeEncoder encoder(*this, tiling);
  std::vector<at::Tensor> latents = {encoder.encode_frames(frames.narrow(2, 0, 1))};
  for (std::int64_t first = 1; first < frames.size(2); first += kTemporalScale) {
    latents.push_back(encoder.encode_frames(frames.narrow(2, first, kTemporalScale)));
  }
  return at::cat(latents, 2);
}

at::Tensor WanVae::decode(const at::Tensor& latents, std::optional<VaeTiling> tiling) const {
  TORCH_CHECK(latents.dim() == 5 && latents.size(2) >= 1, "latents must be [1, z, f, h, w], not ", latents.sizes());
  StreamingVaeDecoder decoder(*this, tiling);
  std::vector<at::Tensor> frames;
  for (std::int64_t i = 0; i < latents.size(2); ++i) {
    frames.push_back(decoder.decode_latent_frame(latents.narrow(2, i, 1)));
  }
  return at::cat(frames, 2);
}

at::Tensor StreamingVaeEncoder::moments(const at::Tensor& frames, const Probe& probe) {
  const std::int64_t scale = model_.config_.spatial_scale();
  const std::int64_t n_frames = clip_ ? kTemporalScale : 1;
  TORCH_CHECK(frames.dim() == 5 && frames.size(0) == 1 && frames.size(1) == 3 && frames.size(2) == n_frames &&
                  frames.size(3) % scale == 0 && frames.size(4) % scale == 0,
              "frames to encode must be [1, 3, ",
              n_frames,
              ", H, W] with H and W multiples of ",
              scale,
              ", not ",
              frames.sizes());
  const vae::VaeParts& parts = *model_.parts_;
  vae::ClipState& clip = continue_clip(clip_, frames.size(3) / scale, frames.size(4) / scale, tiling_, parts.encoder_slots);
  const std::int64_t patch = model_.config_.patch_size;
  const at::Tensor patched = vae::patchify(frames.to(model_.device_, model_.dtype_), patch);
  return vae::through_tiles(clip.grid, patched, scale / patch, 1, [&](std::size_t tile, const at::Tensor& part) {
    return parts.quant_conv(parts.encoder(part, clip.caches[tile], probe.part("encoder")));
  });
}

at::Tensor StreamingVaeEncoder::encode_frames(const at::Tensor& frames, const Probe& probe) {
  return model_.normalise(moments(frames, probe).narrow(1, 0, model_.config_.z_dim).to(at::kFloat));
}

at::Tensor StreamingVaeDecoder::decode_latent_frame(const at::Tensor& latent, const Probe& probe) {
  TORCH_CHECK(latent.dim() == 5 && latent.size(0) == 1 && latent.size(1) == model_.config_.z_dim && latent.size(2) == 1,
              "a latent frame must be [1, ",
              model_.config_.z_dim,
              ", 1, h, w], not ",
              latent.sizes());
  const vae::VaeParts& parts = *model_.parts_;
  vae::ClipState& clip = continue_clip(clip_, latent.size(3), latent.size(4), tiling_, parts.decoder_slots);
  const std::int64_t patch = model_.config_.patch_size;
  const at::Tensor z = model_.denormalise(latent.to(model_.device_, at::kFloat)).to(model_.dtype_);
  const std::int64_t scale = model_.config_.spatial_scale() / patch;
  const at::Tensor patched = vae::through_tiles(clip.grid, z, 1, scale, [&](std::size_t tile, const at::Tensor& part) {
    return parts.decoder(parts.post_quant_conv(part), clip.caches[tile], probe.part("decoder"));
  });
  return vae::unpatchify(patched, patch).to(at::kFloat).clamp(-1, 1);
}

std::int64_t StreamingVaeDecoder::cache_bytes() const {
  std::int64_t sum = 0;
  if (clip_) {
    for (const vae::CausalCache& cache : clip_->caches) {
      sum += cache.bytes();
    }
  }
  return sum;
}

}  // namespace merope::worker
