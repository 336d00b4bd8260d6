// Numbers as they stand in files and messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace merope::camera::internal {

// The shortest text that reads back as the same double: "0.1", "nan", "1e+300".
std::string shortest(double value);

// Two significant digits, for the size of an error: "0.31".
std::string rough(double value);

// The whole text as a double, independent of the locale; "nan" and "inf" are numbers here, "1 " and "" are not.
std::optional<double> parse_number(std::string_view text);

}  // namespace merope::camera::internal
