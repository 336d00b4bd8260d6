#include "worker/model/vae/vae_encoder.h"

#include <ATen/ATen.h>

namespace merope::worker::vae {
namespace {

constexpr std::int64_t kKernel3[] = {3, 3, 3};

std::vector<DownStage> read_stages(const VaeConfig& config, WeightReader& reader, CacheSlots& slots) {
  std::vector<DownStage> stages;
  std::int64_t flat = 0;  // the plain kind numbers all layers of all stages in one list
  std::int64_t in = config.base_dim;
  for (std::int64_t i = 0; i < config.n_stages(); ++i) {
    DownStage stage;
    const std::string blocks = "encoder.down_blocks.";
    const std::string own = blocks + std::to_string(i) + ".";
    const bool last = i + 1 == config.n_stages();
    const bool temporal = !last && config.temporal_downsample[static_cast<std::size_t>(i)];
    stage.shortcut = config.residual;
    stage.first_index = config.residual ? i : flat;
    stage.out = config.base_dim * config.dim_mult[static_cast<std::size_t>(i)];
    stage.factor_t = temporal ? 2 : 1;
    stage.factor_s = last ? 1 : 2;
    for (std::int64_t j = 0; j < config.num_res_blocks; ++j) {
      const std::string name = config.residual ? own + "resnets." + std::to_string(j) : blocks + std::to_string(flat++);
      stage.resnets.emplace_back(reader, slots, name, in, stage.out);
      in = stage.out;
    }
    if (!last) {
      const std::string name = config.residual ? own + "downsampler" : blocks + std::to_string(flat++);
      stage.downsample.emplace(reader, slots, name, stage.out, temporal);
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

std::int64_t last_width(const VaeConfig& config) {
  return config.base_dim * config.dim_mult.back();
}

}  // namespace

at::Tensor DownStage::operator()(const at::Tensor& x, CausalCache& cache, const Probe& probe) const {
  std::int64_t index = first_index;
  const auto show = [&](const at::Tensor& value) { probe(("down_blocks." + std::to_string(index++)).c_str(), value); };
  at::Tensor y = x;
  for (const ResidualBlock& resnet : resnets) {
    y = resnet(y, cache);
    if (probe && !shortcut) {
      show(y);
    }
  }
  if (downsample) {
    y = (*downsample)(y, cache);
  }
  if (shortcut) {
    y = y + average_down(x, out, factor_t, factor_s);
  }
  if (probe && (shortcut || downsample)) {
    show(y);
  }
  return y;
}

VaeEncoder::VaeEncoder(const VaeConfig& config, WeightReader& reader, CacheSlots& slots)
    : conv_in_(reader, slots, "encoder.conv_in", config.patched_channels(), config.base_dim, kKernel3),
      stages_(read_stages(config, reader, slots)),
      mid_(reader, slots, "encoder.mid_block", last_width(config)),
      head_(reader, slots, "encoder", last_width(config), 2 * config.z_dim) {}

at::Tensor VaeEncoder::operator()(const at::Tensor& x, CausalCache& cache, const Probe& probe) const {
  at::Tensor y = conv_in_(x, cache);
  probe("conv_in", y);
  for (const DownStage& stage : stages_) {
    y = stage(y, cache, probe);
  }
  y = mid_(y, cache);
  probe("mid_block", y);
  y = head_(y, cache);
  probe("out", y);
  cache.chunk_done();
  return y;
}

}  // namespace merope::worker::vae
