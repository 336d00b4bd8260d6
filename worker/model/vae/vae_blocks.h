// The blocks that encoder and decoder are made of.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "worker/model/vae/causal_conv.h"

namespace merope::worker::vae {

// x / max(|x|, 1e-12) * sqrt(C) * gamma, the Euclidean norm over the channels of one position. No eps inside the root.
struct RmsNorm {
  // n_trailing: ones that follow the channels in the stored shape of gamma.
  RmsNorm(WeightReader& reader, const std::string& prefix, std::int64_t channels, int n_trailing);
  at::Tensor operator()(const at::Tensor& x) const;  // channels in dimension 1, any rank

  at::Tensor scaled_gamma;  // [C], gamma * sqrt(C)
};

// x + two causal 3x3x3 convolutions, each after norm and SiLU; a pointwise convolution on the way around when widths differ.
class ResidualBlock {
 public:
  ResidualBlock(WeightReader& reader, CacheSlots& slots, const std::string& prefix, std::int64_t in, std::int64_t out);
  at::Tensor operator()(const at::Tensor& x, CausalCache& cache) const;

 private:
  RmsNorm norm1_;
  CausalConv3d conv1_;
  RmsNorm norm2_;
  CausalConv3d conv2_;
  std::optional<PointwiseConv> shortcut_;
};

// x + single-head attention among the positions of each frame.
class SpatialAttention {
 public:
  SpatialAttention(WeightReader& reader, const std::string& prefix, std::int64_t channels);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  RmsNorm norm_;
  PointwiseConv qkv_;
  PointwiseConv proj_;
};

// Residual block, attention, residual block, at the lowest resolution.
class MidBlock {
 public:
  MidBlock(WeightReader& reader, CacheSlots& slots, const std::string& prefix, std::int64_t channels);
  at::Tensor operator()(const at::Tensor& x, CausalCache& cache) const;

 private:
  ResidualBlock first_;
  SpatialAttention attention_;
  ResidualBlock second_;
};

// Norm, SiLU and the last causal convolution of encoder and decoder.
class OutputHead {
 public:
  OutputHead(WeightReader& reader, CacheSlots& slots, const std::string& prefix, std::int64_t in, std::int64_t out);
  at::Tensor operator()(const at::Tensor& x, CausalCache& cache) const;

 private:
  RmsNorm norm_;
  CausalConv3d conv_;
};

}  // namespace merope::worker::vae
