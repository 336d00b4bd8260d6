// Text to token ids by a SentencePiece unigram model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "worker/text/internal/piece_index.h"
#include "worker/text/sentencepiece_model.h"
#include "worker/text/text_normalizer.h"

namespace merope::worker {

// Gives the ids that the SentencePiece library gives (spm_encode is the tests' second opinion), without special tokens:
// those that occur in the text as characters are not recognised as such. Immutable; any thread.
class UnigramTokenizer {
 public:
  static Result<UnigramTokenizer> create(SentencepieceModel model, const std::string& origin);

  std::vector<std::int32_t> encode(std::string_view text) const;

  const SentencepieceModel& model() const { return model_; }

 private:
  struct Segment {
    std::string_view text;
    std::int32_t id = 0;
  };

  UnigramTokenizer(SentencepieceModel model, TextNormalizer normalizer);
  // The segmentation of the highest total score, by dynamic programming over byte positions.
  std::vector<Segment> best_path(std::string_view normalized) const;

  SentencepieceModel model_;
  TextNormalizer normalizer_;
  PieceIndex index_;
  float unknown_score_ = 0;
  float max_score_ = 0;
  std::vector<std::int32_t> byte_ids_;  // 256 ids, or none without byte fallback
};

}  // namespace merope::worker
