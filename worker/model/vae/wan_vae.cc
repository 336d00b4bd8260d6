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

at::Tensor WanVae::encode(const at::Tensor& frames) const {
  TORCH_CHECK(frames.dim() == 5 && frames.size(2) % kTemporalScale == 1,
              "the frame count of a clip to encode must be 4n+1, its shape is ",
              frames.sizes());
  StreamingVaeEncoder encoder(*this);
  std::vector<at::Tensor> latents = {encoder.encode_frames(frames.narrow(2, 0, 1))};
  for (std::int64_t first = 1; first < frames.size(2); first += kTemporalScale) {
    latents.push_back(encoder.encode_frames(frames.narrow(2, first, kTemporalScale)));
  }
  return at::cat(latents, 2);
}

at::Tensor WanVae::decode(const at::Tensor& latents) const {
  TORCH_CHECK(latents.dim() == 5 && latents.size(2) >= 1, "latents must be [1, z, f, h, w], not ", latents.sizes());
  StreamingVaeDecoder decoder(*this);
  std::vector<at::Tensor> frames;
  for (std::int64_t i = 0; i < latents.size(2); ++i) {
    frames.push_back(decoder.decode_latent_frame(latents.narrow(2, i, 1)));
  }
  return at::cat(frames, 2);
}

StreamingVaeEncoder::StreamingVaeEncoder(const WanVae& model) : model_(model) {
  begin();
}
StreamingVaeEncoder::~StreamingVaeEncoder() = default;

void StreamingVaeEncoder::begin() {
  cache_ = std::make_unique<vae::CausalCache>(model_.parts_->encoder_slots);
}

at::Tensor StreamingVaeEncoder::moments(const at::Tensor& frames, const Probe& probe) {
  const std::int64_t scale = model_.config_.spatial_scale();
  TORCH_CHECK(frames.dim() == 5 && frames.size(0) == 1 && frames.size(1) == 3 &&
                  frames.size(2) == (cache_->first_chunk() ? 1 : kTemporalScale) && frames.size(3) % scale == 0 &&
                  frames.size(4) % scale == 0,
              "frames to encode must be [1, 3, ",
              cache_->first_chunk() ? 1 : kTemporalScale,
              ", H, W] with H and W multiples of ",
              scale,
              ", not ",
              frames.sizes());
  const vae::VaeParts& parts = *model_.parts_;
  const at::Tensor patched = vae::patchify(frames.to(model_.device_, model_.dtype_), model_.config_.patch_size);
  return parts.quant_conv(parts.encoder(patched, *cache_, probe.part("encoder")));
}

at::Tensor StreamingVaeEncoder::encode_frames(const at::Tensor& frames, const Probe& probe) {
  return model_.normalise(moments(frames, probe).narrow(1, 0, model_.config_.z_dim).to(at::kFloat));
}

StreamingVaeDecoder::StreamingVaeDecoder(const WanVae& model) : model_(model) {
  begin();
}
StreamingVaeDecoder::~StreamingVaeDecoder() = default;

void StreamingVaeDecoder::begin() {
  cache_ = std::make_unique<vae::CausalCache>(model_.parts_->decoder_slots);
}

at::Tensor StreamingVaeDecoder::decode_latent_frame(const at::Tensor& latent, const Probe& probe) {
  TORCH_CHECK(latent.dim() == 5 && latent.size(0) == 1 && latent.size(1) == model_.config_.z_dim && latent.size(2) == 1,
              "a latent frame must be [1, ",
              model_.config_.z_dim,
              ", 1, h, w], not ",
              latent.sizes());
  const vae::VaeParts& parts = *model_.parts_;
  const at::Tensor z = model_.denormalise(latent.to(model_.device_, at::kFloat)).to(model_.dtype_);
  const at::Tensor patched = parts.decoder(parts.post_quant_conv(z), *cache_, probe.part("decoder"));
  return vae::unpatchify(patched, model_.config_.patch_size).to(at::kFloat).clamp(-1, 1);
}

std::int64_t StreamingVaeDecoder::cache_bytes() const {
  return cache_->bytes();
}

}  // namespace merope::worker
