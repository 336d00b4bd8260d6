// A prompt as the transformer is conditioned on it: cleaned, cut into tokens, encoded.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "worker/model/umt5/umt5_encoder.h"
#include "worker/text/prompt_tokenizer.h"

namespace merope::worker {

// One thread at a time.
class PromptEncoder {
 public:
  // Reads tokenizer/ and text_encoder/ of a model folder. kNotFound, kDataLoss or kUnimplemented with the file and the
  // reason.
  static Result<PromptEncoder> open(const std::filesystem::path& model, at::Device device, at::ScalarType dtype);

  // [1, n, text_dim]: one row per real token, the end mark included; at most max_tokens of them, a longer prompt is cut.
  // The encoder never sees padding: its real rows do not depend on it, and what it makes of padding is thrown away anyhow.
  at::Tensor encode(std::string_view prompt, std::int64_t max_tokens) const;

  std::int64_t text_dim() const { return encoder_.config.d_model; }

 private:
  PromptEncoder(PromptTokenizer tokenizer, Umt5Encoder encoder)
      : tokenizer_(std::move(tokenizer)), encoder_(std::move(encoder)) {}

  PromptTokenizer tokenizer_;
  Umt5Encoder encoder_;
};

// Encoded prompts [1, n_i, d] as one batch [B, n, d], n the longest; the shorter ones end in zero rows, which is what the
// transformer's padding is.
at::Tensor stack_prompts(const std::vector<at::Tensor>& prompts);

}  // namespace merope::worker
