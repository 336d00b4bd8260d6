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
    default: return std::nullopt;
  }
}

}  // namespace

Result<std::unique_ptr<const CheckpointWeights>> CheckpointWeights::open(const std::filesystem::path& folder) {
  MEROPE_ASSIGN_OR_RETURN(ComponentFiles files, ComponentFiles::open(folder));
  return std::unique_ptr<const CheckpointWeights>(new CheckpointWeights(std::move(files)));
}

std::vector<std::string> CheckpointWeights::names() const {
  std::vector<std::string> names;
  names.reserve(files_.tensors().size());
  for (const auto& [name, place] : files_.tensors()) {
    names.push_back(name);
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

std::string CheckpointWeights::origin(const std::string& name) const {
  const auto found = files_.tensors().find(name);
  return found == files_.tensors().end() ? files_.folder().string() : found->second.file->path().string();
}

}  // namespace merope::worker
