// What a SentencePiece model does to a text before it is cut into pieces.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "worker/text/charsmap.h"
#include "worker/text/internal/piece_index.h"
#include "worker/text/sentencepiece_model.h"

namespace merope::worker {

// Replaces by the model's character map, longest match first (for Wan's model: compatibility forms to plain ones, odd spaces
// to the space, NFKC composition), folds and trims spaces, writes them as U+2581 and puts one in front, each as far as the
// model says. User-defined symbols pass untouched; bytes that are no UTF-8 become U+FFFD. Immutable; any thread.
class TextNormalizer {
 public:
  static Result<TextNormalizer> create(const SentencepieceModel& model, const std::string& origin);

  std::string normalize(std::string_view text) const;

 private:
  struct Prefix {
    std::string_view replacement;
    std::size_t length = 0;  // bytes of the text that it stands for, at least 1
  };

  TextNormalizer(const SentencepieceModel& model, Charsmap map);
  Prefix normalize_prefix(std::string_view text) const;

  Charsmap map_;
  PieceIndex user_defined_;
  bool add_dummy_prefix_;
  bool remove_extra_whitespaces_;
  bool treat_whitespace_as_suffix_;
  std::string_view space_;  // what a space is written as
};

}  // namespace merope::worker
