#include "worker/model/vae/vae_decoder.h"

#include <ATen/ATen.h>

namespace merope::worker::vae {
namespace {

constexpr std::int64_t kKernel3[] = {3, 3, 3};

std::int64_t first_width(const VaeConfig& config) {
  return config.decoder_base_dim * config.dim_mult.back();
}

std::vector<UpStage> read_stages(const VaeConfig& config, WeightReader& reader, CacheSlots& slots) {
  std::vector<UpStage> stages;
  std::int64_t in = first_width(config);
  for (std::int64_t i = 0; i < config.n_stages(); ++i) {
    UpStage stage;
    const std::string name = "decoder.up_blocks." + std::to_string(i) + ".";
    const auto mirrored = static_cast<std::size_t>(config.n_stages() - 1 - i);
    const bool last = mirrored == 0;
    const bool temporal = !last && config.temporal_downsample[mirrored - 1];
    stage.out = config.decoder_base_dim * config.dim_mult[mirrored];
    stage.shortcut = config.residual && !last;
    stage.factor_t = temporal ? 2 : 1;
    for (std::int64_t j = 0; j <= config.num_res_blocks; ++j) {
      stage.resnets.emplace_back(reader, slots, name + "resnets." + std::to_string(j), in, stage.out);
      in = stage.out;
    }
    if (!last) {
      in = config.residual ? stage.out : stage.out / 2;
      stage.upsample.emplace(
          reader, slots, name + (config.residual ? "upsampler" : "upsamplers.0"), stage.out, in, temporal);
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

}  // namespace

at::Tensor UpStage::operator()(const at::Tensor& x, CausalCache& cache) const {
  at::Tensor y = x;
  for (const ResidualBlock& resnet : resnets) {
    y = resnet(y, cache);
  }
  if (upsample) {
    y = (*upsample)(y, cache);
  }
  return shortcut ? y + duplicate_up(x, out, factor_t, 2, cache.first_chunk()) : y;
}

VaeDecoder::VaeDecoder(const VaeConfig& config, WeightReader& reader, CacheSlots& slots)
    : conv_in_(reader, slots, "decoder.conv_in", config.z_dim, first_width(config), kKernel3),
      mid_(reader, slots, "decoder.mid_block", first_width(config)),
      stages_(read_stages(config, reader, slots)),
      head_(reader, slots, "decoder", config.decoder_base_dim * config.dim_mult.front(), config.patched_channels()) {}

at::Tensor VaeDecoder::operator()(const at::Tensor& x, CausalCache& cache, const Probe& probe) const {
  at::Tensor y = conv_in_(x, cache);
  probe("conv_in", y);
  y = mid_(y, cache);
  probe("mid_block", y);
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    y = stages_[i](y, cache);
    if (probe) {
      probe(("up_blocks." + std::to_string(i)).c_str(), y);
    }
  }
  y = head_(y, cache);
  probe("out", y);
  cache.chunk_done();
  return y;
}

}  // namespace merope::worker::vae
