// text_encoder/config.json: the shape of a UMT5 encoder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace merope::worker {

// The defaults are those of the class UMT5Config, which apply to keys that a config.json leaves out.
struct Umt5Config {
  std::int64_t vocab_size = 250112;  // rows of the embedding, more than the tokenizer has pieces
  std::int64_t d_model = 512;
  std::int64_t d_kv = 64;  // width of a head; n_heads * d_kv need not be d_model
  std::int64_t d_ff = 1024;
  std::int64_t n_layers = 8;
  std::int64_t n_heads = 6;
  std::int64_t n_buckets = 32;      // of relative positions, both directions together
  std::int64_t max_distance = 128;  // tokens; farther ones share the last bucket
  double eps = 1e-6;

  // `origin` names the file in messages. kDataLoss when the text is no such config; kUnimplemented, with key and value, when
  // it describes another architecture (plain ReLU feed-forward, another model_type). Unknown keys are ignored: transformers
  // writes dozens that do not concern an encoder.
  static Result<Umt5Config> parse(std::string_view json, const std::string& origin);
};

}  // namespace merope::worker
