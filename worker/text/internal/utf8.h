// One character of UTF-8 at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace merope::worker {

struct Utf8Char {
  char32_t code = 0;
  std::size_t length = 0;  // bytes; 1 for a byte that starts no valid character
  bool valid = false;
};

// The first character of a text that is not empty. Overlong forms, surrogates and codes above U+10FFFF are invalid.
Utf8Char first_char(std::string_view text);

void append_utf8(std::string& text, char32_t code);

}  // namespace merope::worker
