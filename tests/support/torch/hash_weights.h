// Weights and inputs from an integer hash, so that a golden test needs no fixture file: the same values come out of any
// implementation that follows the rules in docs/goldens.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/model/weight_source.h"

namespace merope::worker::test {

// u(k, i) in [-1, 1), exact in fp32.
double hash_value(std::uint64_t k, std::uint64_t i);

// inp(j; shape): element i is u(1000 + j, i).
at::Tensor hash_input(std::uint64_t j, at::IntArrayRef shape);

using Shapes = std::map<std::string, std::vector<std::int64_t>>;  // sorted by name, as the rules want

// Fills every named shape: the k-th name in byte order, counted from `first`, gets f(u(k, i)), f by the kind of the tensor.
std::map<std::string, at::Tensor> hash_weights(const Shapes& shapes, std::uint64_t first = 0);

// A WeightSource over tensors in memory.
class MapWeightSource final : public WeightSource {
 public:
  explicit MapWeightSource(std::map<std::string, at::Tensor> tensors) : tensors_(std::move(tensors)) {}
  std::vector<std::string> names() const override;
  std::optional<at::Tensor> find(const std::string& name) const override;
  std::string origin(const std::string&) const override { return "memory"; }

 private:
  std::map<std::string, at::Tensor> tensors_;
};

}  // namespace merope::worker::test
