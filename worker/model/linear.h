// A dense layer: y = x W^T + b.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "worker/model/weight_source.h"

namespace merope::worker {

struct Linear {
  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out]

  // x: [..., in] in the dtype of the weights.
  at::Tensor operator()(const at::Tensor& x) const;
};

// `prefix`.weight and `prefix`.bias, in the reader's dtype or in `dtype`.
Linear read_linear(WeightReader& reader, const std::string& prefix, std::int64_t in, std::int64_t out);
Linear read_linear(WeightReader& reader, const std::string& prefix, std::int64_t in, std::int64_t out, at::ScalarType dtype);

}  // namespace merope::worker
