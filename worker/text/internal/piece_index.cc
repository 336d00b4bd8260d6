#include "worker/text/internal/piece_index.h"

#include <algorithm>

namespace merope::worker {

// std::string compares bytes as unsigned char, which is the order that advance() relies on.
PieceIndex::PieceIndex(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::ranges::sort(entries_, {}, &Entry::text);
}

bool PieceIndex::Cursor::advance(char byte) {
  const std::size_t depth = depth_++;
  // Every string in the range has the bytes read so far; the one that ends here comes first and is left behind.
  const auto key = [depth](const Entry& entry) {
    return entry.text.size() == depth ? -1 : static_cast<int>(static_cast<unsigned char>(entry.text[depth]));
  };
  const auto range = std::ranges::equal_range(first_, last_, static_cast<int>(static_cast<unsigned char>(byte)), {}, key);
  first_ = range.begin();
  last_ = range.end();
  return first_ != last_;
}

std::optional<std::int32_t> PieceIndex::Cursor::match() const {
  return first_ != last_ && first_->text.size() == depth_ ? std::optional(first_->id) : std::nullopt;
}

std::size_t PieceIndex::longest_prefix(std::string_view text) const {
  std::size_t longest = 0;
  Cursor cursor(*this);
  for (std::size_t i = 0; i < text.size() && cursor.advance(text[i]); ++i) {
    if (cursor.match()) {
      longest = i + 1;
    }
  }
  return longest;
}

}  // namespace merope::worker
