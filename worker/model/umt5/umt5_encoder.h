// The UMT5 text encoder: token ids to one vector per token.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "worker/model/umt5/umt5_config.h"
#include "worker/model/weight_source.h"

namespace merope::worker {

// One layer: self-attention and a gated feed-forward, both behind an RMS norm, no biases anywhere.
struct Umt5Layer {
  at::Tensor attention_norm;  // [d_model]
  at::Tensor q, k, v;         // [n_heads * d_kv, d_model]
  at::Tensor o;               // [d_model, n_heads * d_kv]
  // [n_buckets, n_heads]. Every layer has its own; plain T5 shares the first layer's.
  at::Tensor position_bias;
  at::Tensor ff_norm;     // [d_model]
  at::Tensor wi_0, wi_1;  // [d_ff, d_model]: the gate (through GELU, tanh form) and what it gates
  at::Tensor wo;          // [d_model, d_ff]
};

// Immutable after construction. One thread at a time, as ATen's CPU thread pool is the engine thread's.
struct Umt5Encoder {
  // Asks `weights` for every tensor under the names of the Hugging Face checkpoints; the caller calls weights.finish() and
  // must not use the encoder when that fails. The reader's dtype is the dtype of all computation: float32 or bfloat16;
  // float16 overflows in the residual stream and is refused (std::invalid_argument).
  Umt5Encoder(const Umt5Config& config, WeightReader& weights);

  Umt5Config config;
  at::Tensor embedding;  // [vocab_size, d_model]; never scaled, and there is no other position signal than the bias
  std::vector<Umt5Layer> layers;
  at::Tensor final_norm;  // [d_model]
};

// One prompt: `ids` padded at the end, of which the first n_real count. -> [ids.size(), d_model], of which rows from n_real
// on are what the encoder makes of padding. Real rows attend to real rows only, so they do not depend on the padding. Throws
// std::invalid_argument for an id outside the vocabulary. `after_layer`, when given, receives each layer's output.
at::Tensor umt5_hidden_states(const Umt5Encoder& encoder,
                              std::span<const std::int64_t> ids,
                              std::int64_t n_real,
                              std::vector<at::Tensor>* after_layer = nullptr);

// What the transformer is conditioned on: as above, with every row from n_real on set to zero. -> [1, ids.size(), d_model].
// The transformer attends to those zero rows too; they are part of the model, and leaving the encoder's own output there is
// a well-known bug.
at::Tensor umt5_prompt_embeds(const Umt5Encoder& encoder, std::span<const std::int64_t> ids, std::int64_t n_real);

// The bucket of relative position `distance` = key index - query index, bidirectional: near distances have a bucket each,
// farther ones share logarithmically wider ones up to max_distance.
std::int64_t umt5_position_bucket(std::int64_t distance, std::int64_t n_buckets, std::int64_t max_distance);

}  // namespace merope::worker
