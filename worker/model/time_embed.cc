#include "worker/model/time_embed.h"

#include <ATen/ATen.h>

#include <cmath>

namespace merope::worker {

at::Tensor timestep_sinusoid(const at::Tensor& timesteps, std::int64_t width) {
  const std::int64_t half = width / 2;
  const at::Tensor exponent = at::arange(half, timesteps.options().dtype(at::kFloat)) * (-std::log(10000.0)) / half;
  const at::Tensor angles = at::outer(timesteps.to(at::kFloat), exponent.exp());
  return at::cat({angles.cos(), angles.sin()}, -1);
}

at::Tensor per_token(const at::Tensor& rows, const at::Tensor& token_index) {
  if (!token_index.defined()) {
    return rows.narrow(0, 0, 1).unsqueeze(0);
  }
  return rows.index_select(0, token_index).unsqueeze(0);
}

TimeConditioning TimeConditioning::rows(at::IntArrayRef indices) const {
  const at::Tensor index = at::tensor(indices, at::kLong).to(embedding.device());
  return {embedding.index_select(0, index), projection.index_select(0, index)};
}

TimeConditioning TimeEmbed::operator()(const at::Tensor& timesteps, const Probe& probe) const {
  const at::Tensor sinusoid = timestep_sinusoid(timesteps, linear_1.weight.size(1));
  const at::Tensor embedding = linear_2(at::silu(linear_1(sinusoid))).to(projection.weight.scalar_type());
  const at::Tensor projected = projection(at::silu(embedding));
  probe("sinusoid", sinusoid);
  probe("embedding", embedding);
  probe("projection", projected);
  return {embedding, projected.unflatten(-1, {6, embedding.size(-1)})};
}

TimeEmbed read_time_embed(WeightReader& reader, const std::string& prefix, std::int64_t freq_dim, std::int64_t dim) {
  return {read_linear(reader, prefix + ".time_embedder.linear_1", freq_dim, dim, at::kFloat),
          read_linear(reader, prefix + ".time_embedder.linear_2", dim, dim, at::kFloat),
          read_linear(reader, prefix + ".time_proj", dim, 6 * dim)};
}

}  // namespace merope::worker
