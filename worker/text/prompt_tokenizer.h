// Prompts to the token ids that the text encoder takes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "worker/text/unigram_tokenizer.h"

namespace merope::worker {

struct PromptTokens {
  std::vector<std::int64_t> ids;  // padded to the length that was asked for
  std::int64_t n_real = 0;        // ids before the padding, the end-of-sequence token included; at least 1
};

// The tokenizer of one checkpoint. Immutable; any thread.
class PromptTokenizer {
 public:
  // Reads spiece.model of a checkpoint's tokenizer/ folder. A folder with only a tokenizer.json is refused: the same model
  // is stored there in another form, and spiece.model is what every Wan checkpoint has. kFailedPrecondition when the model
  // has no end-of-sequence or padding piece.
  static Result<PromptTokenizer> open(const std::filesystem::path& folder);
  static Result<PromptTokenizer> create(SentencepieceModel model, const std::string& origin);

  // Cleans the prompt, cuts it to max_length - 1 pieces, ends it with the end-of-sequence token and pads it to max_length
  // (512 in Wan's pipelines). An empty prompt is the end-of-sequence token alone. max_length is at least 1.
  PromptTokens tokenize(std::string_view prompt, std::int64_t max_length) const;

  const UnigramTokenizer& unigram() const { return unigram_; }

 private:
  explicit PromptTokenizer(UnigramTokenizer unigram) : unigram_(std::move(unigram)) {}

  UnigramTokenizer unigram_;
};

}  // namespace merope::worker
