#include "tests/worker/model/vae_whole_clip.h"

#include <ATen/ATen.h>

#include <cmath>

namespace merope::worker::test {
namespace {

at::Tensor from(const at::Tensor& x, std::int64_t first) {
  return x.narrow(2, first, x.size(2) - first);
}

at::Tensor swish(const at::Tensor& x) {
  return x * x.sigmoid();
}

// Frame by frame through `function`, which maps [1, C, H, W] to [1, C', H', W'].
template <typename Function>
at::Tensor per_frame(const at::Tensor& x, const Function& function) {
  std::vector<at::Tensor> frames;
  for (std::int64_t i = 0; i < x.size(2); ++i) {
    frames.push_back(function(x.select(2, i)).unsqueeze(2));
  }
  return at::cat(frames, 2);
}

// Element (c, t, y, x) of the result is the mean over a group of source elements; the loop says which.
at::Tensor average_down_by_index(const at::Tensor& x, std::int64_t out, std::int64_t ft, std::int64_t fs) {
  const std::int64_t missing = (ft - x.size(2) % ft) % ft;
  const at::Tensor padded = at::constant_pad_nd(x, {0, 0, 0, 0, missing, 0}).contiguous();
  const std::int64_t group = x.size(1) * ft * fs * fs / out;
  std::vector<at::Tensor> channels;
  for (std::int64_t o = 0; o < out; ++o) {
    at::Tensor sum;
    for (std::int64_t g = 0; g < group; ++g) {
      std::int64_t index = o * group + g;
      const std::int64_t dx = index % fs;
      const std::int64_t dy = (index /= fs) % fs;
      const std::int64_t dt = (index /= fs) % ft;
      const at::Tensor part = padded.select(1, index / ft)
                                  .slice(1, dt, std::nullopt, ft)
                                  .slice(2, dy, std::nullopt, fs)
                                  .slice(3, dx, std::nullopt, fs);
      sum = sum.defined() ? sum + part : part;
    }
    channels.push_back(sum / static_cast<double>(group));
  }
  return at::stack(channels, 1);
}

at::Tensor duplicate_up_by_index(const at::Tensor& x, std::int64_t out, std::int64_t ft) {
  const std::int64_t repeats = out * ft * 4 / x.size(1);
  at::Tensor result = at::empty({1, out, x.size(2) * ft, x.size(3) * 2, x.size(4) * 2});
  for (std::int64_t index = 0; index < out * ft * 4; ++index) {
    const std::int64_t dx = index % 2;
    const std::int64_t dy = index / 2 % 2;
    const std::int64_t dt = index / 4 % ft;
    result.select(1, index / (4 * ft))
        .slice(1, dt, std::nullopt, ft)
        .slice(2, dy, std::nullopt, 2)
        .slice(3, dx, std::nullopt, 2)
        .copy_(x.select(1, index / repeats));
  }
  return from(result, ft - 1);
}

}  // namespace

at::Tensor WholeClipVae::conv(const std::string& name, const at::Tensor& x) const {
  const at::Tensor& w = weight(name + ".weight");
  const std::int64_t pad = w.size(4) / 2;
  return at::conv3d(at::constant_pad_nd(x, {pad, pad, pad, pad, w.size(2) - 1, 0}), w, weight(name + ".bias"));
}

at::Tensor WholeClipVae::norm(const std::string& name, const at::Tensor& x) const {
  const at::Tensor length = x.square().sum(1, /*keepdim=*/true).sqrt();
  return x / length * std::sqrt(static_cast<double>(x.size(1))) * weight(name + ".gamma");
}

at::Tensor WholeClipVae::resnet(const std::string& name, const at::Tensor& x) const {
  const at::Tensor y = conv(name + ".conv1", swish(norm(name + ".norm1", x)));
  const at::Tensor z = conv(name + ".conv2", swish(norm(name + ".norm2", y)));
  return z + (has(name + ".conv_shortcut.weight") ? conv(name + ".conv_shortcut", x) : x);
}

at::Tensor WholeClipVae::attention(const std::string& name, const at::Tensor& x) const {
  return x + per_frame(x, [&](const at::Tensor& frame) {
           const at::Tensor qkv =
               at::conv2d(norm(name + ".norm", frame), weight(name + ".to_qkv.weight"), weight(name + ".to_qkv.bias"));
           const std::vector<at::Tensor> parts = qkv.flatten(2).chunk(3, 1);  // [1, C, positions]
           const double scale = 1 / std::sqrt(static_cast<double>(x.size(1)));
           const at::Tensor weights = (at::matmul(parts[0].transpose(1, 2), parts[1]) * scale).softmax(-1);
           const at::Tensor mixed = at::matmul(parts[2], weights.transpose(1, 2)).view(frame.sizes());
           return at::conv2d(mixed, weight(name + ".proj.weight"), weight(name + ".proj.bias"));
         });
}

at::Tensor WholeClipVae::middle(const std::string& name, const at::Tensor& x) const {
  return resnet(name + ".resnets.1", attention(name + ".attentions.0", resnet(name + ".resnets.0", x)));
}

at::Tensor WholeClipVae::head(const std::string& name, const at::Tensor& x) const {
  return conv(name + ".conv_out", swish(norm(name + ".norm_out", x)));
}

at::Tensor WholeClipVae::down(const std::string& name, const at::Tensor& x) const {
  const at::Tensor halved = per_frame(x, [&](const at::Tensor& frame) {
    return at::conv2d(
        at::constant_pad_nd(frame, {0, 1, 0, 1}), weight(name + ".resample.1.weight"), weight(name + ".resample.1.bias"), 2);
  });
  if (!has(name + ".time_conv.weight") || x.size(2) == 1) {
    return halved;
  }
  const at::Tensor later =
      at::conv3d(halved, weight(name + ".time_conv.weight"), weight(name + ".time_conv.bias"), {2, 1, 1});
  return at::cat({halved.narrow(2, 0, 1), later}, 2);
}

at::Tensor WholeClipVae::up(const std::string& name, const at::Tensor& x) const {
  at::Tensor frames = x;
  if (has(name + ".time_conv.weight") && x.size(2) > 1) {
    const std::vector<at::Tensor> pair = conv(name + ".time_conv", from(x, 1)).chunk(2, 1);
    std::vector<at::Tensor> in_order = {x.narrow(2, 0, 1)};
    for (std::int64_t i = 0; i + 1 < x.size(2); ++i) {
      in_order.push_back(pair[0].narrow(2, i, 1));
      in_order.push_back(pair[1].narrow(2, i, 1));
    }
    frames = at::cat(in_order, 2);
  }
  return per_frame(frames, [&](const at::Tensor& frame) {
    const at::Tensor doubled = frame.repeat_interleave(2, 2).repeat_interleave(2, 3);
    return at::conv2d(doubled, weight(name + ".resample.1.weight"), weight(name + ".resample.1.bias"), 1, 1);
  });
}

at::Tensor WholeClipVae::moments(const at::Tensor& video) const {
  at::Tensor x = video;
  if (config_.patch_size == 2) {
    std::vector<at::Tensor> channels;
    for (std::int64_t c = 0; c < 12; ++c) {
      channels.push_back(video.select(1, c / 4).slice(2, c % 2, std::nullopt, 2).slice(3, c / 2 % 2, std::nullopt, 2));
    }
    x = at::stack(channels, 1);
  }
  x = conv("encoder.conv_in", x);
  int flat = 0;
  for (std::int64_t stage = 0; stage < config_.n_stages(); ++stage) {
    const at::Tensor entry = x;
    const std::string own = "encoder.down_blocks." + std::to_string(stage);
    const auto next = [&](const std::string& name) {
      return config_.residual ? own + name : "encoder.down_blocks." + std::to_string(flat++);
    };
    for (std::int64_t j = 0; j < config_.num_res_blocks; ++j) {
      x = resnet(next(".resnets." + std::to_string(j)), x);
    }
    const bool last = stage + 1 == config_.n_stages();
    if (!last) {
      x = down(next(".downsampler"), x);
    }
    if (config_.residual) {
      const bool temporal = !last && config_.temporal_downsample[static_cast<std::size_t>(stage)];
      x = x + average_down_by_index(entry, x.size(1), temporal ? 2 : 1, last ? 1 : 2);
    }
  }
  return conv("quant_conv", head("encoder", middle("encoder.mid_block", x)));
}

at::Tensor WholeClipVae::decode(const at::Tensor& z) const {
  at::Tensor x = middle("decoder.mid_block", conv("decoder.conv_in", conv("post_quant_conv", z)));
  for (std::int64_t stage = 0; stage < config_.n_stages(); ++stage) {
    const at::Tensor entry = x;
    const std::string own = "decoder.up_blocks." + std::to_string(stage);
    for (std::int64_t j = 0; j <= config_.num_res_blocks; ++j) {
      x = resnet(own + ".resnets." + std::to_string(j), x);
    }
    if (stage + 1 < config_.n_stages()) {
      const std::string name = own + (config_.residual ? ".upsampler" : ".upsamplers.0");
      x = up(name, x);
      if (config_.residual) {
        x = x + duplicate_up_by_index(entry, x.size(1), has(name + ".time_conv.weight") ? 2 : 1);
      }
    }
  }
  x = head("decoder", x);
  if (config_.patch_size == 2) {
    at::Tensor video = at::empty({1, 3, x.size(2), 2 * x.size(3), 2 * x.size(4)});
    for (std::int64_t c = 0; c < 12; ++c) {
      video.select(1, c / 4).slice(2, c % 2, std::nullopt, 2).slice(3, c / 2 % 2, std::nullopt, 2).copy_(x.select(1, c));
    }
    x = video;
  }
  return x.clamp(-1, 1);
}

}  // namespace merope::worker::test
