#include "worker/model/weight_source.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "worker/model/finite.h"

namespace merope::worker {
namespace {

std::string shape_text(at::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

// stored * scale, multiplied in fp32 and rounded once. Some rows at a time: the fp32 values of a large layer would be as
// much memory again as the layer.
at::Tensor scaled(const at::Tensor& stored, const at::Tensor& scale, at::ScalarType dtype) {
  at::Tensor result = at::empty(stored.sizes(), stored.options().dtype(dtype));
  if (stored.dim() == 0) {
    return result.copy_(stored.to(at::kFloat) * scale.reshape({}));
  }
  constexpr std::int64_t kRows = 256;
  const bool per_row = scale.numel() > 1;
  for (std::int64_t row = 0; row < stored.size(0); row += kRows) {
    const std::int64_t n = std::min(kRows, stored.size(0) - row);
    const at::Tensor factor = per_row ? scale.narrow(0, row, n) : scale;
    std::vector<std::int64_t> per_row_shape(static_cast<std::size_t>(stored.dim()), 1);
    per_row_shape.front() = factor.numel();
    result.narrow(0, row, n).copy_(stored.narrow(0, row, n).to(at::kFloat) * factor.reshape(per_row_shape));
  }
  return result;
}

}  // namespace

at::Tensor WeightReader::tensor(const std::string& name, at::IntArrayRef shape) {
  return tensor(name, shape, dtype_);
}

at::Tensor WeightReader::tensor(const std::string& name, at::IntArrayRef shape, at::ScalarType dtype) {
  asked_.insert(name);
  const auto options = at::TensorOptions().dtype(dtype).device(device_);
  std::optional<at::Tensor> stored;
  try {
    stored = source_.find(name);
  } catch (const std::runtime_error& error) {
    problems_.push_back(name + " " + error.what() + ", in " + source_.origin(name));
    return at::zeros(shape, options);
  }
  if (!stored) {
    problems_.push_back(name + " is missing in " + source_.origin(name));
    return at::zeros(shape, options);
  }
  if (stored->sizes() != shape) {
    problems_.push_back(name + " has shape " + shape_text(stored->sizes()) + " instead of " + shape_text(shape) + " in " +
                        source_.origin(name));
    return at::zeros(shape, options);
  }
  std::optional<at::Tensor> scale;
  try {
    scale = source_.scale(name);
  } catch (const std::runtime_error& error) {
    problems_.push_back(name + " " + error.what() + ", in " + source_.origin(name));
  }
  if (!all_finite(*stored) || (scale && !all_finite(*scale))) {
    problems_.push_back(name + " holds NaN or infinity in " + source_.origin(name));
  }
  at::Tensor converted = device_.is_meta() ? at::empty(shape, options)
                         : scale           ? scaled(*stored, *scale, dtype).to(device_)
                                           : stored->to(device_, dtype);
  if (!converted.is_alias_of(*stored)) {
    stored.reset();
    source_.release(name);
  }
  return converted;
}

bool WeightReader::has(const std::string& name) const {
  const std::vector<std::string> names = source_.names();
  return std::ranges::find(names, name) != names.end();
}

Status WeightReader::finish() const {
  std::vector<std::string> problems = problems_;
  for (const std::string& name : source_.names()) {
    if (!asked_.contains(name)) {
      problems.push_back(name + " is unexpected in " + source_.origin(name));
    }
  }
  if (problems.empty()) {
    return {};
  }
  constexpr std::size_t kMaxListed = 20;
  std::string message;
  for (std::size_t i = 0; i < problems.size() && i < kMaxListed; ++i) {
    message += (i == 0 ? "" : "; ") + problems[i];
  }
  if (problems.size() > kMaxListed) {
    message += "; and " + std::to_string(problems.size() - kMaxListed) + " more";
  }
  return Error{ErrorCode::kDataLoss, message};
}

}  // namespace merope::worker
