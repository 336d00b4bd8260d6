// Finds all strings of a fixed set that start at one place of a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace merope::worker {

// The strings sorted; a search narrows the range of those that share the bytes read so far. A few binary searches per byte
// suffice for prompts and need no more memory than the strings. Immutable; any thread.
class PieceIndex {
 public:
  struct Entry {
    std::string text;
    std::int32_t id = 0;
  };

  // The strings are not empty and differ.
  explicit PieceIndex(std::vector<Entry> entries);

  class Cursor {
   public:
    explicit Cursor(const PieceIndex& index) : first_(index.entries_.data()), last_(first_ + index.entries_.size()) {}

    // Reads one byte more; false when no string goes on like this, and the cursor is used up.
    bool advance(char byte);
    // The id of the string that consists of exactly the bytes read, if it is in the set.
    std::optional<std::int32_t> match() const;

   private:
    const Entry* first_;
    const Entry* last_;
    std::size_t depth_ = 0;
  };

  bool empty() const { return entries_.empty(); }
  // Bytes of the longest string of the set that `text` starts with; 0 when there is none.
  std::size_t longest_prefix(std::string_view text) const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace merope::worker
