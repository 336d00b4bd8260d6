// The named character references of HTML ("&amp;", "&eacute;").
#pragma once

#include <span>
#include <string_view>

namespace merope::worker {

struct HtmlEntity {
  std::string_view name;  // without the ampersand; with the semicolon, except where HTML lets it be left out
  std::string_view text;  // one or two characters, UTF-8
};

// All of them, sorted by name in byte order.
std::span<const HtmlEntity> html_entities();

}  // namespace merope::worker
