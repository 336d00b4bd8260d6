// Numbers as they stand in messages.
#pragma once

#include <string>

namespace merope::camera::internal {

// The shortest text that reads back as the same double: "0.1", "nan", "1e+300".
std::string shortest(double value);

// Two significant digits, for the size of an error: "0.31".
std::string rough(double value);

}  // namespace merope::camera::internal
