#include "worker/model/norms.h"

#include <ATen/ATen.h>

namespace merope::worker {

at::Tensor layer_norm(const at::Tensor& x, double eps) {
  return at::layer_norm(x.to(at::kFloat), {x.size(-1)}, {}, {}, eps);
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  return at::layer_norm(x.to(at::kFloat), {x.size(-1)}, weight, bias, eps).to(x.scalar_type());
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor scale = at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + eps);
  return (wide * scale * weight.to(at::kFloat)).to(x.scalar_type());
}

at::Tensor modulated_layer_norm(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale, double eps) {
  return at::addcmul(shift, layer_norm(x, eps), 1.0 + scale).to(x.scalar_type());
}

}  // namespace merope::worker
