#include "worker/text/html_unescape.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "worker/text/internal/html_entities.h"
#include "worker/text/internal/utf8.h"

namespace merope::worker {
namespace {

constexpr std::size_t kLongestName = 32;

// What &#128; to &#159; stand for.
constexpr std::array<char32_t, 32> kWindows1252{0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                                0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D,   0x017D, 0x8F,
                                                0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                                0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

bool is_dropped(char32_t code) {
  const bool is_control = (code < 0x20 && code != '\t' && code != '\n' && code != '\f' && code != '\r') || code == 0x7F;
  const bool is_noncharacter = (code >= 0xFDD0 && code <= 0xFDEF) || (code & 0xFFFEU) == 0xFFFEU;
  return is_control || is_noncharacter;
}

std::string numbered_character(std::uint64_t number) {
  std::string character;
  if (number == 0 || (number >= 0xD800 && number <= 0xDFFF) || number > 0x10FFFF) {
    append_utf8(character, 0xFFFD);
  } else if (number >= 0x80 && number < 0xA0) {
    append_utf8(character, kWindows1252[number - 0x80]);
  } else if (!is_dropped(static_cast<char32_t>(number))) {
    append_utf8(character, static_cast<char32_t>(number));
  }
  return character;
}

int digit_of(char c, int base) {
  const int value = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : base;
  return value < base ? value : -1;
}

struct Reference {
  std::size_t length = 0;  // bytes behind the ampersand; 0: no reference
  std::string text;
};

// `rest` starts behind "&#".
Reference numeric(std::string_view rest) {
  const bool is_hex = rest.starts_with('x') || rest.starts_with('X');
  std::size_t at = is_hex ? 1 : 0;
  const std::size_t first_digit = at;
  std::uint64_t number = 0;
  for (int digit = 0; at < rest.size() && (digit = digit_of(rest[at], is_hex ? 16 : 10)) >= 0; ++at) {
    number = std::min<std::uint64_t>(number * (is_hex ? 16 : 10) + static_cast<std::uint64_t>(digit), 0x110000);
  }
  if (at == first_digit) {
    return {};
  }
  const bool has_semicolon = at < rest.size() && rest[at] == ';';
  return {1 + at + (has_semicolon ? 1 : 0), numbered_character(number)};
}

// `rest` starts behind "&". The longest name that it starts with.
Reference named(std::string_view rest) {
  const std::span<const HtmlEntity> entities = html_entities();
  for (std::size_t length = std::min(rest.size(), kLongestName); length >= 2; --length) {
    const std::string_view name = rest.substr(0, length);
    const auto found = std::ranges::lower_bound(entities, name, {}, &HtmlEntity::name);
    if (found != entities.end() && found->name == name) {
      return {length, std::string(found->text)};
    }
  }
  return {};
}

}  // namespace

std::string html_unescape(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    const std::size_t ampersand = text.find('&');
    plain += text.substr(0, ampersand);
    if (ampersand == std::string_view::npos) {
      break;
    }
    text.remove_prefix(ampersand + 1);
    const Reference reference = text.starts_with('#') ? numeric(text.substr(1)) : named(text);
    if (reference.length == 0) {
      plain += '&';
    } else {
      plain += reference.text;
    }
    text.remove_prefix(reference.length);
  }
  return plain;
}

}  // namespace merope::worker
