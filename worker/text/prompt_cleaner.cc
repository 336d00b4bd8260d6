#include "worker/text/prompt_cleaner.h"

#include "worker/text/html_unescape.h"
#include "worker/text/internal/utf8.h"

namespace merope::worker {
namespace {

// Neither printed nor white space: C0 without tab and line ends, DEL, deprecated formatting, byte-order mark, annotations.
bool is_invisible(char32_t code) {
  return code < 0x09 || code == 0x0B || (code > 0x0D && code < 0x20) || code == 0x7F || (code >= 0x206A && code <= 0x206F) ||
         code == 0xFEFF || (code >= 0xFFF9 && code <= 0xFFFC);
}

char straight_quote(char32_t code) {
  if (code == 0x02BC || (code >= 0x2018 && code <= 0x201B)) {
    return '\'';
  }
  return code >= 0x201C && code <= 0x201F ? '"' : '\0';
}

// Unicode white space, with the separators that Python's str.split knows.
bool is_white_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000;
}

// Bytes of a terminal's colour or cursor command at the start of the text, ESC [ digits and semicolons, a letter; or 0.
std::size_t terminal_escape_length(std::string_view text) {
  if (!text.starts_with("\x1B[")) {
    return 0;
  }
  const std::size_t at = text.find_first_not_of("0123456789;", 2);
  const bool is_letter =
      at != std::string_view::npos && ((text[at] >= 'a' && text[at] <= 'z') || (text[at] >= 'A' && text[at] <= 'Z'));
  return is_letter ? at + 1 : 0;
}

std::string repaired(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    if (const std::size_t escape = terminal_escape_length(text); escape > 0) {
      text.remove_prefix(escape);
      continue;
    }
    const Utf8Char character = first_char(text);
    if (const char quote = character.valid ? straight_quote(character.code) : '\0'; quote != '\0') {
      plain += quote;
    } else if (!character.valid || !is_invisible(character.code)) {
      plain += text.substr(0, character.length);
    }
    text.remove_prefix(character.length);
  }
  return plain;
}

std::string with_single_spaces(std::string_view text) {
  std::string plain;
  bool is_space_due = false;
  while (!text.empty()) {
    const Utf8Char character = first_char(text);
    if (character.valid && is_white_space(character.code)) {
      is_space_due = !plain.empty();
    } else {
      if (is_space_due) {
        plain += ' ';
      }
      is_space_due = false;
      plain += text.substr(0, character.length);
    }
    text.remove_prefix(character.length);
  }
  return plain;
}

}  // namespace

std::string clean_prompt(std::string_view prompt) {
  // A '<' says that this line and what follows is markup, where references mean something; there the repair leaves them
  // alone.
  const std::size_t angle = prompt.find('<');
  const std::size_t line_end = angle == std::string_view::npos ? prompt.size() : prompt.rfind('\n', angle) + 1;
  const std::string text = repaired(html_unescape(prompt.substr(0, line_end)) + std::string(prompt.substr(line_end)));
  return with_single_spaces(html_unescape(html_unescape(text)));
}

}  // namespace merope::worker
