// Halving and doubling of pictures and frame rates, with weights and without.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "worker/model/vae/causal_conv.h"

namespace merope::worker::vae {

// Halves rows and columns: one row of zeros below and one column to the right, 3x3 convolution with stride 2. Then, if
// `temporal`, halves the frames: 3 frames with stride 2, the first of which is the last one of the chunk before. The first
// chunk (one frame) passes the temporal part unchanged.
class Downsample {
 public:
  Downsample(WeightReader& reader, CacheSlots& slots, const std::string& prefix, std::int64_t channels, bool temporal);
  at::Tensor operator()(const at::Tensor& x, CausalCache& cache) const;

 private:
  at::Tensor weight_, bias_;
  at::Tensor time_weight_, time_bias_;  // undefined when the frames stay
  int slot_ = -1;
};

// If `temporal`, doubles the frames: a causal convolution over 3 frames makes two channel sets per frame, the earlier and
// the later output frame. The first chunk passes unchanged and is not part of what later chunks see. Then doubles rows and
// columns by repetition, followed by a 3x3 convolution.
class Upsample {
 public:
  Upsample(
      WeightReader& reader, CacheSlots& slots, const std::string& prefix, std::int64_t in, std::int64_t out, bool temporal);
  at::Tensor operator()(const at::Tensor& x, CausalCache& cache) const;

 private:
  at::Tensor weight_, bias_;
  std::optional<CausalConv3d> time_conv_;
};

// Shortcut around a Downsample: blocks of factor_t frames and factor_s x factor_s pixels become channels (frame, row, column
// after the channel itself), and groups of neighbouring channels are averaged to make `out` of them. Frames that do not fill
// a block are preceded by zeros.
at::Tensor average_down(const at::Tensor& x, std::int64_t out, std::int64_t factor_t, std::int64_t factor_s);

// Shortcut around an Upsample, the other way: channels are repeated and read as (out, frame, row, column). The first chunk
// loses its first factor_t - 1 frames.
at::Tensor duplicate_up(
    const at::Tensor& x, std::int64_t out, std::int64_t factor_t, std::int64_t factor_s, bool first_chunk);

// patch x patch pixels to channels and back: channel = (c * patch + column) * patch + row, columns before rows.
at::Tensor patchify(const at::Tensor& x, std::int64_t patch);
at::Tensor unpatchify(const at::Tensor& x, std::int64_t patch);

}  // namespace merope::worker::vae
