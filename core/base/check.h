// MEROPE_CHECK: an invariant of our own code. When it is broken the process ends with a sentence on stderr. Never for
// something that a client, Redis or a file can cause: those are Errors.
#pragma once

#include <string_view>

namespace merope {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view message);

}  // namespace merope

#define MEROPE_CHECK(condition, message)                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      ::merope::check_failed(__FILE__, __LINE__, #condition, (message));     \
    }                                                                        \
  } while (false)
