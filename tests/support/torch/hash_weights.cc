#include "tests/support/torch/hash_weights.h"

#include <ATen/ATen.h>

#include <cmath>

namespace merope::worker::test {
namespace {

double scaled(const std::string& name, const std::vector<std::int64_t>& shape, double u) {
  if (name.ends_with("scale_shift_table")) {
    return 0.5 * u;
  }
  if (name.ends_with("gamma") || (name.ends_with("weight") && shape.size() == 1)) {
    return 1.0 + 0.1 * u;
  }
  if (name.ends_with("relative_attention_bias.weight") || name == "shared.weight") {
    return u;
  }
  if (shape.size() >= 2) {
    double fan_in = 1;
    for (std::size_t axis = 1; axis < shape.size(); ++axis) {
      fan_in *= static_cast<double>(shape[axis]);
    }
    return std::sqrt(3.0 / fan_in) * u;
  }
  return 0.1 * u;
}

}  // namespace

double hash_value(std::uint64_t k, std::uint64_t i) {
  std::uint64_t z = (k + 1) * 0x9E3779B97F4A7C15U + i * 0xD1342543DE82EF95U;
  z ^= z >> 30U;
  z *= 0xBF58476D1CE4E5B9U;
  z ^= z >> 27U;
  z *= 0x94D049BB133111EBU;
  z ^= z >> 31U;
  return static_cast<double>(z >> 40U) * 0x1p-23 - 1.0;
}

at::Tensor hash_input(std::uint64_t j, at::IntArrayRef shape) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  float* values = tensor.data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    values[i] = static_cast<float>(hash_value(1000 + j, static_cast<std::uint64_t>(i)));
  }
  return tensor;
}

std::map<std::string, at::Tensor> hash_weights(const Shapes& shapes, std::uint64_t first) {
  std::map<std::string, at::Tensor> tensors;
  std::uint64_t k = first;
  for (const auto& [name, shape] : shapes) {
    at::Tensor tensor = at::empty(shape, at::kFloat);
    float* values = tensor.data_ptr<float>();
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      values[i] = static_cast<float>(scaled(name, shape, hash_value(k, static_cast<std::uint64_t>(i))));
    }
    tensors.emplace(name, tensor);
    ++k;
  }
  return tensors;
}

std::vector<std::string> MapWeightSource::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) {
    names.push_back(name);
  }
  return names;
}

std::optional<at::Tensor> MapWeightSource::find(const std::string& name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace merope::worker::test
