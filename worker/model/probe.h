// A look at intermediate activations, for golden tests and for comparing with another implementation. Costs one branch when
// nobody looks.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

namespace merope::worker {

// Called with a dotted name ("blocks.0.attn1.q") and the value.
using ProbeFunction = std::function<void(const std::string& name, const at::Tensor& value)>;

class Probe {
 public:
  Probe() = default;
  explicit Probe(const ProbeFunction& function) : function_(&function) {}

  // The same probe for a part of the model.
  Probe part(const std::string& name) const {
    Probe probe = *this;
    if (function_ != nullptr) {
      probe.prefix_ += name + ".";
    }
    return probe;
  }
  // Whether anybody looks: for values that are computed for the probe alone.
  explicit operator bool() const { return function_ != nullptr; }
  void operator()(const char* name, const at::Tensor& value) const {
    if (function_ != nullptr) {
      (*function_)(prefix_ + name, value);
    }
  }

 private:
  const ProbeFunction* function_ = nullptr;
  std::string prefix_;
};

}  // namespace merope::worker
