#include "worker/model/self_attention.h"

#include <ATen/ATen.h>

#include "worker/model/norms.h"
#include "worker/model/rope.h"

namespace merope::worker {

at::Tensor split_heads(const at::Tensor& x, std::int64_t n_heads) {
  return x.unflatten(-1, {n_heads, x.size(-1) / n_heads});
}

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias) {
  const std::optional<at::Tensor> mask = bias.defined() ? std::optional(bias) : std::nullopt;
  return at::scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), mask).transpose(1, 2);
}

at::Tensor SelfAttention::operator()(const at::Tensor& x, const at::Tensor& rope, const Probe& probe) const {
  const at::Tensor q = apply_rope(split_heads(rms_norm(to_q(x), norm_q, eps), n_heads), rope);
  const at::Tensor k = apply_rope(split_heads(rms_norm(to_k(x), norm_k, eps), n_heads), rope);
  const at::Tensor attended = attend(q, k, split_heads(to_v(x), n_heads), {});
  probe("input", x);
  probe("q", q);
  probe("k", k);
  probe("attended", attended);
  const at::Tensor out = to_out(attended.flatten(-2));
  probe("out", out);
  return out;
}

SelfAttention read_self_attention(WeightReader& reader, const std::string& prefix, const WanConfig& config) {
  const std::int64_t d = config.dim();
  return {read_linear(reader, prefix + ".to_q", d, d),
          read_linear(reader, prefix + ".to_k", d, d),
          read_linear(reader, prefix + ".to_v", d, d),
          read_linear(reader, prefix + ".to_out.0", d, d),
          reader.tensor(prefix + ".norm_q.weight", {d}),
          reader.tensor(prefix + ".norm_k.weight", {d}),
          config.n_heads,
          config.eps};
}

}  // namespace merope::worker
