#include "worker/model/vae/resample.h"

#include <ATen/ATen.h>

namespace merope::worker::vae {
namespace {

constexpr std::int64_t kTimeKernel[] = {3, 1, 1};

at::Tensor read_conv2d(WeightReader& reader, const std::string& prefix, std::int64_t in, std::int64_t out) {
  return reader.tensor(prefix + ".resample.1.weight", {out, in, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
}

// [B, T, H, W, C] as the [B, C, T, H, W] that everything else expects.
at::Tensor as_video(const at::Tensor& channels_last) {
  return channels_last.permute({0, 4, 1, 2, 3});
}

}  // namespace

Downsample::Downsample(
    WeightReader& reader, CacheSlots& slots, const std::string& prefix, std::int64_t channels, bool temporal)
    : weight_(read_conv2d(reader, prefix, channels, channels)),
      bias_(reader.tensor(prefix + ".resample.1.bias", {channels})) {
  if (temporal) {
    time_weight_ = reader.tensor(prefix + ".time_conv.weight", {channels, channels, 3, 1, 1})
                       .contiguous(at::MemoryFormat::ChannelsLast3d);
    time_bias_ = reader.tensor(prefix + ".time_conv.bias", {channels});
    slot_ = slots.take();
  }
}

at::Tensor Downsample::operator()(const at::Tensor& x, CausalCache& cache) const {
  const at::Tensor padded = at::constant_pad_nd(fold_frames(x), {0, 1, 0, 1});
  const at::Tensor halved = unfold_frames(at::conv2d(padded, weight_, bias_, /*stride=*/2), x.size(0));
  if (!time_weight_.defined()) {
    return halved;
  }
  at::Tensor& history = cache[slot_];
  const at::Tensor before = history;
  history = last_frames(before, halved, 1);
  return cache.first_chunk() ? halved
                             : at::conv3d(at::cat({before, halved}, 2), time_weight_, time_bias_, /*stride=*/{2, 1, 1});
}

Upsample::Upsample(
    WeightReader& reader, CacheSlots& slots, const std::string& prefix, std::int64_t in, std::int64_t out, bool temporal)
    : weight_(read_conv2d(reader, prefix, in, out)), bias_(reader.tensor(prefix + ".resample.1.bias", {out})) {
  if (temporal) {
    time_conv_.emplace(reader, slots, prefix + ".time_conv", in, 2 * in, kTimeKernel);
  }
}

at::Tensor Upsample::operator()(const at::Tensor& x, CausalCache& cache) const {
  at::Tensor frames = x;
  if (time_conv_ && !cache.first_chunk()) {
    const at::Tensor pairs = (*time_conv_)(x, cache).permute({0, 2, 3, 4, 1});  // [B, T, H, W, 2 C]
    frames = as_video(pairs.reshape({x.size(0), x.size(2), x.size(3), x.size(4), 2, x.size(1)})
                          .permute({0, 1, 4, 2, 3, 5})
                          .reshape({x.size(0), 2 * x.size(2), x.size(3), x.size(4), x.size(1)}));
  }
  const at::Tensor doubled = at::upsample_nearest2d(fold_frames(frames), {2 * x.size(3), 2 * x.size(4)});
  return unfold_frames(at::conv2d(doubled, weight_, bias_, /*stride=*/1, /*padding=*/1), x.size(0));
}

at::Tensor average_down(const at::Tensor& x, std::int64_t out, std::int64_t factor_t, std::int64_t factor_s) {
  if (factor_t == 1 && factor_s == 1 && x.size(1) == out) {
    return x;
  }
  const std::int64_t missing = (factor_t - x.size(2) % factor_t) % factor_t;
  const at::Tensor whole = missing == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, 0, missing, 0});
  const std::int64_t frames = whole.size(2) / factor_t;
  const std::int64_t rows = whole.size(3) / factor_s;
  const std::int64_t columns = whole.size(4) / factor_s;
  const at::Tensor blocks =
      whole.reshape({x.size(0), x.size(1), frames, factor_t, rows, factor_s, columns, factor_s})
          .permute({0, 2, 4, 6, 1, 3, 5, 7})
          .reshape({x.size(0), frames, rows, columns, out, x.size(1) * factor_t * factor_s * factor_s / out});
  return as_video(blocks.mean(-1));
}

at::Tensor duplicate_up(
    const at::Tensor& x, std::int64_t out, std::int64_t factor_t, std::int64_t factor_s, bool first_chunk) {
  const std::int64_t repeats = out * factor_t * factor_s * factor_s / x.size(1);
  const at::Tensor blocks = x.permute({0, 2, 3, 4, 1})
                                .unsqueeze(-1)
                                .expand({-1, -1, -1, -1, -1, repeats})
                                .reshape({x.size(0), x.size(2), x.size(3), x.size(4), out, factor_t, factor_s, factor_s});
  const at::Tensor video =
      as_video(blocks.permute({0, 1, 5, 2, 6, 3, 7, 4})
                   .reshape({x.size(0), x.size(2) * factor_t, x.size(3) * factor_s, x.size(4) * factor_s, out}));
  return first_chunk ? video.narrow(2, factor_t - 1, video.size(2) - (factor_t - 1)) : video;
}

at::Tensor patchify(const at::Tensor& x, std::int64_t patch) {
  const std::int64_t rows = x.size(3) / patch;
  const std::int64_t columns = x.size(4) / patch;
  return as_video(x.reshape({x.size(0), x.size(1), x.size(2), rows, patch, columns, patch})
                      .permute({0, 2, 3, 5, 1, 6, 4})
                      .reshape({x.size(0), x.size(2), rows, columns, x.size(1) * patch * patch}));
}

at::Tensor unpatchify(const at::Tensor& x, std::int64_t patch) {
  const std::int64_t channels = x.size(1) / (patch * patch);
  return as_video(x.permute({0, 2, 3, 4, 1})
                      .reshape({x.size(0), x.size(2), x.size(3), x.size(4), channels, patch, patch})
                      .permute({0, 1, 2, 6, 3, 5, 4})
                      .reshape({x.size(0), x.size(2), x.size(3) * patch, x.size(4) * patch, channels}));
}

}  // namespace merope::worker::vae
