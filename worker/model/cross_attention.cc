#include "worker/model/cross_attention.h"

#include <ATen/ATen.h>

#include "worker/model/norms.h"
#include "worker/model/self_attention.h"

namespace merope::worker {

TextKeyValue CrossAttention::encode(const at::Tensor& text) const {
  return {split_heads(rms_norm(to_k(text), norm_k, eps), n_heads), split_heads(to_v(text), n_heads)};
}

at::Tensor CrossAttention::operator()(const at::Tensor& x,
                                      const TextKeyValue& text,
                                      const at::Tensor& bias,
                                      const Probe& probe) const {
  const at::Tensor q = split_heads(rms_norm(to_q(x), norm_q, eps), n_heads);
  const at::Tensor out = to_out(attend(q, text.k, text.v, bias).flatten(-2));
  probe("out", out);
  return out;
}

CrossAttention read_cross_attention(WeightReader& reader, const std::string& prefix, const WanConfig& config) {
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
