// The character map of a SentencePiece model: which byte sequences normalisation replaces, and by what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace merope::worker {

// Stored as 4 bytes of trie size (little-endian), a double-array trie of 32-bit units, and the replacements, each ended by a
// zero byte; the trie's values are offsets into them. A unit holds, from bit 0: the byte that leads to it (8), whether a
// value hangs below it (1), whether the offset is shifted by 8 more (1), the offset to its children (22). A unit that is a
// value has the top bit set and holds the value in the others. Immutable; any thread.
class Charsmap {
 public:
  // An empty blob is an empty map. kDataLoss when the sizes do not fit; a trie that leads nowhere simply matches nothing.
  static Result<Charsmap> parse(std::string_view blob, const std::string& origin);

  struct Match {
    std::size_t length = 0;  // bytes of the longest sequence of the map at the start of the text; 0: none
    std::string_view replacement;
  };
  Match longest_match(std::string_view text) const;

 private:
  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace merope::worker
