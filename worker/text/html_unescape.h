// HTML character references back to characters.
#pragma once

#include <string>
#include <string_view>

namespace merope::worker {

// By the rules browsers follow for text: "&lt;", "&#60;", "&#x3c;", also without the semicolon where HTML allows that
// ("&ltx" is
// "<x"); numbers of the C1 range mean Windows-1252; surrogates and numbers beyond Unicode become U+FFFD; control characters
// and non-characters vanish. What is no reference stays. One pass: "&amp;lt;" becomes "&lt;".
std::string html_unescape(std::string_view text);

}  // namespace merope::worker
