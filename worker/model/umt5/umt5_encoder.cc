#include "worker/model/umt5/umt5_encoder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace merope::worker {
namespace {

// Without mean removal or bias. The mean of squares and the scaling are in fp32, rounded to the weight's dtype before the
// weight is applied: that order decides the last bit in bfloat16.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor scale = at::rsqrt(wide.square().mean(-1, true) + eps);
  return weight * (wide * scale).to(weight.scalar_type());
}

// [n, n]: the bucket of key j seen from query i.
at::Tensor position_buckets(std::int64_t n, const Umt5Config& config, at::Device device) {
  at::Tensor buckets = at::empty({n, n}, at::kLong);
  auto* const values = buckets.data_ptr<std::int64_t>();
  for (std::int64_t query = 0; query < n; ++query) {
    for (std::int64_t key = 0; key < n; ++key) {
      values[query * n + key] = umt5_position_bucket(key - query, config.n_buckets, config.max_distance);
    }
  }
  return buckets.to(device);
}

// x: [n, d_model]; buckets: [n, n]; mask: [n], 0 for real keys and the most negative finite value for padding.
at::Tensor self_attention(const at::Tensor& x,
                          const Umt5Layer& layer,
                          const Umt5Config& config,
                          const at::Tensor& buckets,
                          const at::Tensor& mask) {
  const std::int64_t n = x.size(0);
  const auto heads = [&](const at::Tensor& weight) {
    return at::linear(x, weight).view({n, config.n_heads, config.d_kv}).transpose(0, 1);  // [n_heads, n, d_kv]
  };
  const at::Tensor bias = layer.position_bias.index({buckets}).permute({2, 0, 1});  // [n_heads, n, n]
  // No 1/sqrt(d_kv): the model was trained without.
  const at::Tensor scores = at::matmul(heads(layer.q), heads(layer.k).transpose(1, 2)) + (bias + mask);
  const at::Tensor attention = scores.softmax(-1, at::kFloat).to(x.scalar_type());
  const at::Tensor mixed = at::matmul(attention, heads(layer.v)).transpose(0, 1).reshape({n, config.n_heads * config.d_kv});
  return at::linear(mixed, layer.o);
}

at::Tensor gated_feed_forward(const at::Tensor& x, const Umt5Layer& layer) {
  return at::linear(at::gelu(at::linear(x, layer.wi_0), "tanh") * at::linear(x, layer.wi_1), layer.wo);
}

}  // namespace

Umt5Encoder::Umt5Encoder(const Umt5Config& c, WeightReader& weights) : config(c) {
  if (weights.dtype() != at::kFloat && weights.dtype() != at::kBFloat16) {
    throw std::invalid_argument(std::string("the UMT5 encoder computes in float32 or bfloat16, not in ") +
                                at::toString(weights.dtype()));
  }
  // Two names of one tensor: transformers ties them whatever the config says, and a file holds either or both.
  const std::string alias = "encoder.embed_tokens.weight";
  const bool has_alias_only = weights.has(alias) && !weights.has("shared.weight");
  embedding = weights.tensor(has_alias_only ? alias : "shared.weight", {c.vocab_size, c.d_model});
  weights.ignore(alias);

  const std::int64_t inner = c.n_heads * c.d_kv;
  for (std::int64_t i = 0; i < c.n_layers; ++i) {
    const std::string block = "encoder.block." + std::to_string(i) + ".layer.";
    const std::string attention = block + "0.SelfAttention.";
    const std::string dense = block + "1.DenseReluDense.";
    layers.push_back({
        .attention_norm = weights.tensor(block + "0.layer_norm.weight", {c.d_model}),
        .q = weights.tensor(attention + "q.weight", {inner, c.d_model}),
        .k = weights.tensor(attention + "k.weight", {inner, c.d_model}),
        .v = weights.tensor(attention + "v.weight", {inner, c.d_model}),
        .o = weights.tensor(attention + "o.weight", {c.d_model, inner}),
        .position_bias = weights.tensor(attention + "relative_attention_bias.weight", {c.n_buckets, c.n_heads}),
        .ff_norm = weights.tensor(block + "1.layer_norm.weight", {c.d_model}),
        .wi_0 = weights.tensor(dense + "wi_0.weight", {c.d_ff, c.d_model}),
        .wi_1 = weights.tensor(dense + "wi_1.weight", {c.d_ff, c.d_model}),
        .wo = weights.tensor(dense + "wo.weight", {c.d_model, c.d_ff}),
    });
  }
  final_norm = weights.tensor("encoder.final_layer_norm.weight", {c.d_model});
}

at::Tensor umt5_hidden_states(const Umt5Encoder& encoder,
                              std::span<const std::int64_t> ids,
                              std::int64_t n_real,
                              std::vector<at::Tensor>* after_layer) {
  const auto n = static_cast<std::int64_t>(ids.size());
  if (n_real < 1 || n_real > n) {
    throw std::invalid_argument("umt5: " + std::to_string(n_real) + " real tokens of " + std::to_string(n));
  }
  const Umt5Config& config = encoder.config;
  const auto outside = std::ranges::find_if(ids, [&](std::int64_t id) { return id < 0 || id >= config.vocab_size; });
  if (outside != ids.end()) {
    throw std::invalid_argument("umt5: token id " + std::to_string(*outside) + " is outside the vocabulary of " +
                                std::to_string(config.vocab_size));
  }
  const at::Device device = encoder.embedding.device();
  const at::ScalarType dtype = encoder.embedding.scalar_type();
  const at::Tensor buckets = position_buckets(n, config, device);
  at::Tensor mask = at::zeros({n}, encoder.embedding.options());
  mask.slice(0, n_real).fill_(dtype == at::kFloat ? static_cast<double>(std::numeric_limits<float>::lowest())
                                                  : static_cast<double>(std::numeric_limits<at::BFloat16>::lowest()));

  at::Tensor index = at::empty({n}, at::kLong);
  std::ranges::copy(ids, index.data_ptr<std::int64_t>());
  at::Tensor x = encoder.embedding.index_select(0, index.to(device));
  for (const Umt5Layer& layer : encoder.layers) {
    x = x + self_attention(rms_norm(x, layer.attention_norm, config.eps), layer, config, buckets, mask);
    x = x + gated_feed_forward(rms_norm(x, layer.ff_norm, config.eps), layer);
    if (after_layer != nullptr) {
      after_layer->push_back(x);
    }
  }
  return rms_norm(x, encoder.final_norm, config.eps);
}

at::Tensor umt5_prompt_embeds(const Umt5Encoder& encoder, std::span<const std::int64_t> ids, std::int64_t n_real) {
  at::Tensor embeds = umt5_hidden_states(encoder, ids, n_real);
  embeds.slice(0, n_real).zero_();
  return embeds.unsqueeze(0);
}

std::int64_t umt5_position_bucket(std::int64_t distance, std::int64_t n_buckets, std::int64_t max_distance) {
  const std::int64_t per_direction = n_buckets / 2;
  const std::int64_t base = distance > 0 ? per_direction : 0;
  const std::int64_t steps = std::abs(distance);
  const std::int64_t n_exact = per_direction / 2;
  if (steps < n_exact) {
    return base + steps;
  }
  // In fp32, as the reference: at the edges of a bucket the rounding decides.
  const float share = std::log(static_cast<float>(steps) / static_cast<float>(n_exact)) /
                      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(n_exact)));
  const auto logarithmic = static_cast<std::int64_t>(share * static_cast<float>(per_direction - n_exact));
  return base + std::min(per_direction - 1, n_exact + logarithmic);
}

}  // namespace merope::worker
