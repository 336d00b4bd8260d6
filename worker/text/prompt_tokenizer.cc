#include "worker/text/prompt_tokenizer.h"

#include <algorithm>

#include "worker/text/prompt_cleaner.h"

namespace merope::worker {

Result<PromptTokenizer> PromptTokenizer::open(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "spiece.model";
  if (!std::filesystem::exists(file)) {
    const bool has_json = std::filesystem::exists(folder / "tokenizer.json");
    return Error{
        has_json ? ErrorCode::kUnimplemented : ErrorCode::kNotFound,
        file.string() + ": is missing" +
            (has_json ? "; tokenizer.json alone is not read, copy spiece.model of the original checkpoint next to it" : "")};
  }
  MEROPE_ASSIGN_OR_RETURN(SentencepieceModel model, SentencepieceModel::read(file));
  return create(std::move(model), file.string());
}

Result<PromptTokenizer> PromptTokenizer::create(SentencepieceModel model, const std::string& origin) {
  if (model.eos_id < 0 || model.pad_id < 0) {
    return Error{ErrorCode::kFailedPrecondition,
                 origin + ": has no piece for " + (model.eos_id < 0 ? "the end of a sequence (</s>)" : "padding (<pad>)")};
  }
  MEROPE_ASSIGN_OR_RETURN(UnigramTokenizer unigram, UnigramTokenizer::create(std::move(model), origin));
  return PromptTokenizer(std::move(unigram));
}

PromptTokens PromptTokenizer::tokenize(std::string_view prompt, std::int64_t max_length) const {
  MEROPE_CHECK(max_length >= 1, "no room for the end-of-sequence token");
  const std::vector<std::int32_t> pieces = unigram_.encode(clean_prompt(prompt));
  const auto n_kept = std::min(pieces.size(), static_cast<std::size_t>(max_length - 1));
  PromptTokens tokens;
  tokens.ids.assign(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(n_kept));
  tokens.ids.push_back(unigram_.model().eos_id);
  tokens.n_real = static_cast<std::int64_t>(tokens.ids.size());
  tokens.ids.resize(static_cast<std::size_t>(max_length), unigram_.model().pad_id);
  return tokens;
}

}  // namespace merope::worker
