// Structured logs: an event in the past tense and its fields, one JSON object a line (or text on a terminal).
//
//   log::info("job finished", {{"job", id}, {"attempt", 1}, {"ms", 8123}});
//
// Lines about a job carry `job` and `epoch`. No prompt text, image bytes or tokens above debug.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace merope::log {

enum class Level { kTrace, kDebug, kInfo, kWarn, kError };

// A key and its value, rendered at once. Strings are quoted in JSON, numbers and booleans are not.
struct Field {
  template <std::integral T>
  Field(std::string_view k, T v) : key(k), value(std::to_string(v)) {}
  Field(std::string_view k, bool v) : key(k), value(v ? "true" : "false") {}
  Field(std::string_view k, double v);
  Field(std::string_view k, std::string_view v) : key(k), value(v), is_text(true) {}
  Field(std::string_view k, const std::string& v) : key(k), value(v), is_text(true) {}
  Field(std::string_view k, const char* v) : key(k), value(v), is_text(true) {}

  std::string_view key;
  std::string value;
  bool is_text = false;
};

struct Config {
  std::string level = "info";   // trace, debug, info, warn, error
  std::string format = "auto";  // json, text; auto = text on a terminal, else json
};

// Sets up the process's logger, which writes to stderr. Call once at the start of main(); lines before that go out as text.
// `program` is a field of every JSON line.
Status init(std::string_view program, const Config& config);

// Any thread may call it.
void write(Level level, std::string_view event, std::initializer_list<Field> fields);

inline void debug(std::string_view event, std::initializer_list<Field> f = {}) { write(Level::kDebug, event, f); }
inline void info(std::string_view event, std::initializer_list<Field> f = {}) { write(Level::kInfo, event, f); }
inline void warn(std::string_view event, std::initializer_list<Field> f = {}) { write(Level::kWarn, event, f); }
inline void error(std::string_view event, std::initializer_list<Field> f = {}) { write(Level::kError, event, f); }

}  // namespace merope::log
