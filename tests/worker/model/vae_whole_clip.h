// The autoencoder once more, on whole clips: no chunks and no memory, every convolution sees the clip at once. Written from
// the formulas over the tensors by name, to be held against the streaming one.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "worker/model/vae/vae_config.h"

namespace merope::worker::test {

class WholeClipVae {
 public:
  WholeClipVae(VaeConfig config, std::map<std::string, at::Tensor> weights)
      : config_(std::move(config)), weights_(std::move(weights)) {}

  at::Tensor moments(const at::Tensor& video) const;  // [1, 3, 4n+1, H, W] -> [1, 2 z, n+1, h, w]
  at::Tensor decode(const at::Tensor& z) const;       // [1, z, n+1, h, w] -> [1, 3, 4n+1, H, W], clamped

 private:
  const at::Tensor& weight(const std::string& name) const { return weights_.at(name); }
  bool has(const std::string& name) const { return weights_.contains(name); }
  at::Tensor conv(const std::string& name, const at::Tensor& x) const;
  at::Tensor norm(const std::string& name, const at::Tensor& x) const;
  at::Tensor resnet(const std::string& name, const at::Tensor& x) const;
  at::Tensor attention(const std::string& name, const at::Tensor& x) const;
  at::Tensor middle(const std::string& name, const at::Tensor& x) const;
  at::Tensor head(const std::string& name, const at::Tensor& x) const;
  at::Tensor down(const std::string& name, const at::Tensor& x) const;
  at::Tensor up(const std::string& name, const at::Tensor& x) const;

  VaeConfig config_;
  std::map<std::string, at::Tensor> weights_;
};

}  // namespace merope::worker::test
