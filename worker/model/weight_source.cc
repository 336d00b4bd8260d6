#include "worker/model/weight_source.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace merope::worker {
namespace {

std::string shape_text(at::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
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
  at::Tensor converted = stored->to(options.device(), dtype);
  // A sum is finite only when every term is; it reads the weights once and allocates nothing.
  if (!converted.sum(at::kDouble).isfinite().item<bool>()) {
    problems_.push_back(name + " holds NaN or infinity in " + source_.origin(name));
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
