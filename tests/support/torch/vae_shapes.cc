#include "tests/support/torch/vae_shapes.h"

namespace merope::worker::test {
namespace {

using Size = std::int64_t;

// The layout of a published checkpoint, written down once more and apart from the code that reads it.
class Names {
 public:
  void gamma(const std::string& name, Size channels, int trailing) {
    std::vector<Size> shape(static_cast<std::size_t>(1 + trailing), 1);
    shape[0] = channels;
    shapes[name + ".gamma"] = shape;
  }
  void conv(const std::string& name, Size in, Size out, std::vector<Size> kernel) {
    std::vector<Size> shape = {out, in};
    shape.insert(shape.end(), kernel.begin(), kernel.end());
    shapes[name + ".weight"] = shape;
    shapes[name + ".bias"] = {out};
  }
  void resnet(const std::string& name, Size in, Size out) {
    gamma(name + ".norm1", in, 3);
    conv(name + ".conv1", in, out, {3, 3, 3});
    gamma(name + ".norm2", out, 3);
    conv(name + ".conv2", out, out, {3, 3, 3});
    if (in != out) {
      conv(name + ".conv_shortcut", in, out, {1, 1, 1});
    }
  }
  void middle(const std::string& name, Size width) {
    resnet(name + ".resnets.0", width, width);
    gamma(name + ".attentions.0.norm", width, 2);
    conv(name + ".attentions.0.to_qkv", width, 3 * width, {1, 1});
    conv(name + ".attentions.0.proj", width, width, {1, 1});
    resnet(name + ".resnets.1", width, width);
  }

  Shapes shapes;
};

void add_encoder(const VaeConfig& config, Names& names) {
  const std::string blocks = "encoder.down_blocks.";
  Size width = config.base_dim;
  names.conv("encoder.conv_in", 3 * config.patch_size * config.patch_size, width, {3, 3, 3});
  int flat = 0;
  for (std::size_t stage = 0; stage < config.dim_mult.size(); ++stage) {
    const Size out = config.base_dim * config.dim_mult[stage];
    const std::string own = blocks + std::to_string(stage);
    for (Size j = 0; j < config.num_res_blocks; ++j) {
      names.resnet(config.residual ? own + ".resnets." + std::to_string(j) : blocks + std::to_string(flat++), width, out);
      width = out;
    }
    if (stage + 1 < config.dim_mult.size()) {
      const std::string name = config.residual ? own + ".downsampler" : blocks + std::to_string(flat++);
      names.conv(name + ".resample.1", out, out, {3, 3});
      if (config.temporal_downsample[stage]) {
        names.conv(name + ".time_conv", out, out, {3, 1, 1});
      }
    }
  }
  names.middle("encoder.mid_block", width);
  names.gamma("encoder.norm_out", width, 3);
  names.conv("encoder.conv_out", width, 2 * config.z_dim, {3, 3, 3});
}

void add_decoder(const VaeConfig& config, Names& names) {
  const std::size_t n = config.dim_mult.size();
  Size width = config.decoder_base_dim * config.dim_mult.back();
  names.conv("decoder.conv_in", config.z_dim, width, {3, 3, 3});
  names.middle("decoder.mid_block", width);
  for (std::size_t stage = 0; stage < n; ++stage) {
    const Size out = config.decoder_base_dim * config.dim_mult[n - 1 - stage];
    const std::string own = "decoder.up_blocks." + std::to_string(stage);
    for (Size j = 0; j <= config.num_res_blocks; ++j) {
      names.resnet(own + ".resnets." + std::to_string(j), width, out);
      width = out;
    }
    if (stage + 1 < n) {
      const std::string name = own + (config.residual ? ".upsampler" : ".upsamplers.0");
      if (config.temporal_downsample[n - 2 - stage]) {
        names.conv(name + ".time_conv", out, 2 * out, {3, 1, 1});
      }
      width = config.residual ? out : out / 2;
      names.conv(name + ".resample.1", out, width, {3, 3});
    }
  }
  names.gamma("decoder.norm_out", width, 3);
  names.conv("decoder.conv_out", width, 3 * config.patch_size * config.patch_size, {3, 3, 3});
}

}  // namespace

Shapes vae_shapes(const VaeConfig& config) {
  Names names;
  add_encoder(config, names);
  add_decoder(config, names);
  names.conv("quant_conv", 2 * config.z_dim, 2 * config.z_dim, {1, 1, 1});
  names.conv("post_quant_conv", config.z_dim, config.z_dim, {1, 1, 1});
  return names.shapes;
}

VaeConfig vae_config_v21() {
  VaeConfig config = wan21_vae_config();
  config.base_dim = 8;
  config.decoder_base_dim = 8;
  config.num_res_blocks = 1;
  return config;
}

VaeConfig vae_config_v22() {
  VaeConfig config = vae_config_v21();
  config.decoder_base_dim = 12;
  config.z_dim = 48;
  config.residual = true;
  config.patch_size = 2;
  config.latents_mean.clear();
  config.latents_std.clear();
  for (int i = 0; i < config.z_dim; ++i) {
    config.latents_mean.push_back(0.01 * i - 0.2);
    config.latents_std.push_back(0.5 + 0.02 * i);
  }
  return config;
}

VaeConfig without_statistics(VaeConfig config) {
  config.latents_mean.assign(static_cast<std::size_t>(config.z_dim), 0.0);
  config.latents_std.assign(static_cast<std::size_t>(config.z_dim), 1.0);
  return config;
}

}  // namespace merope::worker::test
