#include "worker/text/internal/utf8.h"

namespace merope::worker {
namespace {

constexpr bool is_trail(unsigned char byte) {
  return (byte & 0xC0U) == 0x80U;
}

}  // namespace

Utf8Char first_char(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80U) {
    return {lead, 1, true};
  }
  const std::size_t length = lead >= 0xF0U ? 4 : lead >= 0xE0U ? 3 : 2;
  if (lead < 0xC2U || lead > 0xF4U || text.size() < length) {
    return {0, 1, false};
  }
  char32_t code = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_trail(byte(i))) {
      return {0, 1, false};
    }
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const char32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
    return {0, 1, false};
  }
  return {code, length, true};
}

void append_utf8(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6U);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12U);
    put(0x80 | (code >> 6U & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18U);
    put(0x80 | (code >> 12U & 0x3F));
    put(0x80 | (code >> 6U & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

}  // namespace merope::worker
