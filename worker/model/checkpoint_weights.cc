#include "worker/model/checkpoint_weights.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace merope::worker {
namespace {

std::optional<at::ScalarType> scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool: return at::kBool;
    case Dtype::kU8: return at::kByte;
    case Dtype::kI8: return at::kChar;
    case Dtype::kI16: return at::kShort;
    case Dtype::kI32: return at::kInt;
    case Dtype::kI64: return at::kLong;
    case Dtype::kF16: return at::kHalf;
    case Dtype::kBF16: return at::kBFloat16;
    case Dtype::kF32: return at::kFloat;
    case Dtype::kF64: return at::kDouble;
    case Dtype::kF8E4M3: return at::kFloat8_e4m3fn;
    case Dtype::kF8E5M2: return at::kFloat8_e5m2;
    default: return std::nullopt;
  }
}

bool is_8_bit_float(Dtype dtype) {
  return dtype == Dtype::kF8E4M3 || dtype == Dtype::kF8E5M2;
}

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kScales[] = {".scale_weight", ".weight_scale"};
// Scales of activations and notes for kernels; of no use where the product is computed in 16 or 32 bits.
constexpr std::string_view kNotes[] = {".scale_input", ".input_scale", ".comfy_quant"};
constexpr std::string_view kMarker = "scaled_fp8";

// A table of vectors is looked up, not multiplied with, and stays without factors in files of scaled layers.
bool is_embedding(const std::string& name) {
  return name.ends_with("shared.weight") || name.ends_with("embed_tokens.weight") ||
         name.ends_with("token_embedding.weight");
}

}  // namespace

CheckpointWeights::CheckpointWeights(ComponentFiles files) : files_(std::move(files)) {
  for (const auto& [name, place] : files_.tensors()) {
    if (name == kMarker || name.ends_with("." + std::string(kMarker))) {
      companions_.insert(name);
      is_scaled_ = true;
    }
    if (!name.ends_with(kWeight) || !is_8_bit_float(place.tensor->dtype)) {
      continue;
    }
    const std::string layer = name.substr(0, name.size() - kWeight.size());
    for (const std::string_view note : kNotes) {
      companions_.insert(layer + std::string(note));
    }
    for (const std::string_view ending : kScales) {
      const std::string scale = layer + std::string(ending);
      if (files_.tensors().contains(scale)) {
        companions_.insert(scale);
        scales_.emplace(name, scale);
        is_scaled_ = true;
      }
    }
  }
}

Result<std::unique_ptr<const CheckpointWeights>> CheckpointWeights::open(const std::filesystem::path& place) {
  MEROPE_ASSIGN_OR_RETURN(ComponentFiles files, ComponentFiles::open(place));
  return std::unique_ptr<const CheckpointWeights>(new CheckpointWeights(std::move(files)));
}

std::vector<std::string> CheckpointWeights::names() const {
  std::vector<std::string> names;
  names.reserve(files_.tensors().size());
  for (const auto& [name, place] : files_.tensors()) {
    if (!companions_.contains(name)) {
      names.push_back(name);
    }
  }
  return names;
}

std::optional<at::Tensor> CheckpointWeights::find(const std::string& name) const {
  const auto found = files_.tensors().find(name);
  if (found == files_.tensors().end()) {
    return std::nullopt;
  }
  const auto& [file, tensor] = found->second;
  const std::optional<at::ScalarType> type = scalar_type(tensor->dtype);
  if (!type) {
    throw std::runtime_error("has dtype " + std::string(to_string(tensor->dtype)) + ", which no model here computes with");
  }
  if (is_scaled_ && is_8_bit_float(tensor->dtype) && tensor->shape.size() == 2 && !scales_.contains(name) &&
      !is_embedding(name)) {
    throw std::runtime_error("has dtype " + std::string(to_string(tensor->dtype)) +
                             " and no scale, while other weights beside it have theirs");
  }
  const std::span<const std::byte> bytes = file->bytes(*tensor);
  const auto options = at::TensorOptions().dtype(*type);
  if (bytes.empty()) {
    return at::empty(tensor->shape, options);
  }
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % at::elementSize(*type) != 0) {
    at::Tensor copy = at::empty(tensor->shape, options);
    std::memcpy(copy.data_ptr(), bytes.data(), bytes.size());
    return copy;
  }
  // from_blob has no read-only form; the mapping's pages are what keeps writers out.
  void* const data = const_cast<std::byte*>(bytes.data());
  return at::from_blob(
      data, tensor->shape, [mapping = file->mapping()](void*) {}, options);
}

std::optional<at::Tensor> CheckpointWeights::scale(const std::string& name) const {
  const auto found = scales_.find(name);
  if (found == scales_.end()) {
    return std::nullopt;
  }
  const at::Tensor factors = find(found->second)->to(at::kFloat).flatten();
  const StoredTensor& weight = *files_.tensors().at(name).tensor;
  if (factors.numel() != 1 && (weight.shape.empty() || factors.numel() != weight.shape.front())) {
    throw std::runtime_error("has " + std::to_string(factors.numel()) + " factors in " + found->second +
                             ", which are neither one nor one per row");
  }
  return factors;
}

void CheckpointWeights::release(const std::string& name) const {
  const auto found = files_.tensors().find(name);
  if (found != files_.tensors().end()) {
    const auto& [file, tensor] = found->second;
    file->mapping()->release(file->bytes(*tensor));
  }
}

std::string CheckpointWeights::origin(const std::string& name) const {
  const auto found = files_.tensors().find(name);
  return found == files_.tensors().end() ? files_.place().string() : found->second.file->path().string();
}

}  // namespace merope::worker
