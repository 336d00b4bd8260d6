#include "worker/pipeline/prompt_encoder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <span>

#include "worker/model/checkpoint_weights.h"
#include "worker/pipeline/checkpoint.h"

namespace merope::worker {

Result<PromptEncoder> PromptEncoder::open(const std::filesystem::path& model, at::Device device, at::ScalarType dtype) {
  MEROPE_ASSIGN_OR_RETURN(PromptTokenizer tokenizer, PromptTokenizer::open(model / "tokenizer"));
  const std::filesystem::path folder = model / "text_encoder";
  const std::string config_path = (folder / "config.json").string();
  MEROPE_ASSIGN_OR_RETURN(const std::string config_text, read_text_file(config_path));
  MEROPE_ASSIGN_OR_RETURN(const Umt5Config config, Umt5Config::parse(config_text, config_path));
  const std::size_t n_pieces = tokenizer.unigram().model().pieces.size();
  if (config.vocab_size < static_cast<std::int64_t>(n_pieces)) {
    return Error{ErrorCode::kDataLoss,
                 config_path + ": vocab_size " + std::to_string(config.vocab_size) + " is smaller than the " +
                     std::to_string(n_pieces) + " pieces of the tokenizer"};
  }
  MEROPE_ASSIGN_OR_RETURN(const std::unique_ptr<const CheckpointWeights> weights, CheckpointWeights::open(folder));
  WeightReader reader(*weights, device, dtype);
  Umt5Encoder encoder(config, reader);
  MEROPE_RETURN_IF_ERROR(reader.finish());
  return PromptEncoder(std::move(tokenizer), std::move(encoder));
}

at::Tensor PromptEncoder::encode(std::string_view prompt, std::int64_t max_tokens) const {
  const PromptTokens tokens = tokenizer_.tokenize(prompt, max_tokens);
  const std::span<const std::int64_t> real(tokens.ids.data(), static_cast<std::size_t>(tokens.n_real));
  return umt5_hidden_states(encoder_, real, tokens.n_real).unsqueeze(0);
}

at::Tensor stack_prompts(const std::vector<at::Tensor>& prompts) {
  std::int64_t longest = 0;
  for (const at::Tensor& prompt : prompts) {
    longest = std::max(longest, prompt.size(1));
  }
  std::vector<at::Tensor> rows;
  for (const at::Tensor& prompt : prompts) {
    rows.push_back(at::constant_pad_nd(prompt, {0, 0, 0, longest - prompt.size(1)}));
  }
  return at::cat(rows);
}

}  // namespace merope::worker
