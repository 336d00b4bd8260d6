#include "worker/model/vae/vae_blocks.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

namespace merope::worker::vae {
namespace {

constexpr std::int64_t kKernel3[] = {3, 3, 3};
constexpr std::int64_t kKernel1x1[] = {1, 1};
constexpr std::int64_t kKernel1x1x1[] = {1, 1, 1};

std::vector<std::int64_t> gamma_shape(std::int64_t channels, int n_trailing) {
  std::vector<std::int64_t> shape = {channels};
  shape.insert(shape.end(), static_cast<std::size_t>(n_trailing), 1);
  return shape;
}

// SiLU of a tensor that nobody else holds. Backward needs the argument as it was; without gradients its memory is used
// again.
at::Tensor swish(at::Tensor fresh) {
  return c10::GradMode::is_enabled() ? at::silu(fresh) : at::silu_(fresh);
}

}  // namespace

RmsNorm::RmsNorm(WeightReader& reader, const std::string& prefix, std::int64_t channels, int n_trailing)
    : scaled_gamma(reader.tensor(prefix + ".gamma", gamma_shape(channels, n_trailing)).reshape({channels}) *
                   std::sqrt(static_cast<double>(channels))) {}

at::Tensor RmsNorm::operator()(const at::Tensor& x) const {
  constexpr double kSmallest = 1e-12;
  const at::Tensor norm = at::linalg_vector_norm(x, 2, {1}, /*keepdim=*/true, at::kFloat).clamp_min(kSmallest);
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[1] = scaled_gamma.size(0);
  return (x / norm).to(x.scalar_type()).mul_(scaled_gamma.view(shape));
}

ResidualBlock::ResidualBlock(
    WeightReader& reader, CacheSlots& slots, const std::string& prefix, std::int64_t in, std::int64_t out)
    : norm1_(reader, prefix + ".norm1", in, 3),
      conv1_(reader, slots, prefix + ".conv1", in, out, kKernel3),
      norm2_(reader, prefix + ".norm2", out, 3),
      conv2_(reader, slots, prefix + ".conv2", out, out, kKernel3) {
  if (in != out) {
    shortcut_.emplace(reader, prefix + ".conv_shortcut", in, out, kKernel1x1x1);
  }
}

at::Tensor ResidualBlock::operator()(const at::Tensor& x, CausalCache& cache) const {
  at::Tensor y = conv1_(swish(norm1_(x)), cache);
  y = conv2_(swish(norm2_(y)), cache);
  return y + (shortcut_ ? (*shortcut_)(x) : x);
}

SpatialAttention::SpatialAttention(WeightReader& reader, const std::string& prefix, std::int64_t channels)
    : norm_(reader, prefix + ".norm", channels, 2),
      qkv_(reader, prefix + ".to_qkv", channels, 3 * channels, kKernel1x1),
      proj_(reader, prefix + ".proj", channels, channels, kKernel1x1) {}

at::Tensor SpatialAttention::operator()(const at::Tensor& x) const {
  const std::int64_t frames = x.size(0) * x.size(2);
  const std::int64_t positions = x.size(3) * x.size(4);
  const at::Tensor qkv = qkv_(norm_(x)).permute({0, 2, 3, 4, 1}).reshape({frames, 1, positions, 3 * x.size(1)});
  const std::vector<at::Tensor> parts = qkv.chunk(3, -1);
  const at::Tensor attended = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
  const at::Tensor video =
      attended.reshape({x.size(0), x.size(2), x.size(3), x.size(4), x.size(1)}).permute({0, 4, 1, 2, 3});
  return proj_(video) + x;
}

MidBlock::MidBlock(WeightReader& reader, CacheSlots& slots, const std::string& prefix, std::int64_t channels)
    : first_(reader, slots, prefix + ".resnets.0", channels, channels),
      attention_(reader, prefix + ".attentions.0", channels),
      second_(reader, slots, prefix + ".resnets.1", channels, channels) {}

at::Tensor MidBlock::operator()(const at::Tensor& x, CausalCache& cache) const {
  return second_(attention_(first_(x, cache)), cache);
}

OutputHead::OutputHead(WeightReader& reader, CacheSlots& slots, const std::string& prefix, std::int64_t in, std::int64_t out)
    : norm_(reader, prefix + ".norm_out", in, 3), conv_(reader, slots, prefix + ".conv_out", in, out, kKernel3) {}

at::Tensor OutputHead::operator()(const at::Tensor& x, CausalCache& cache) const {
  return conv_(swish(norm_(x)), cache);
}

}  // namespace merope::worker::vae
