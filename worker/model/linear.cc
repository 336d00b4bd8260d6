#include "worker/model/linear.h"

#include <ATen/ATen.h>

namespace merope::worker {

at::Tensor Linear::operator()(const at::Tensor& x) const {
  return at::linear(x, weight, bias);
}

Linear read_linear(WeightReader& reader, const std::string& prefix, std::int64_t in, std::int64_t out) {
  return read_linear(reader, prefix, in, out, reader.dtype());
}

Linear read_linear(
    WeightReader& reader, const std::string& prefix, std::int64_t in, std::int64_t out, at::ScalarType dtype) {
  return {reader.tensor(prefix + ".weight", {out, in}, dtype), reader.tensor(prefix + ".bias", {out}, dtype)};
}

}  // namespace merope::worker
