#include "core/base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <memory>

namespace merope::log {
namespace {

std::atomic<bool> json_lines{false};

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kTrace: return spdlog::level::trace;
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarn: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto created = std::make_shared<spdlog::logger>("merope", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
    created->flush_on(spdlog::level::trace);
    return created;
  }();
  return *instance;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

}  // namespace

Field::Field(std::string_view k, double v) : key(k), value(fmt::format("{:.6g}", v)) {}

Status init(std::string_view program, const Config& config) {
  const auto level = spdlog::level::from_str(config.level);
  if (level == spdlog::level::off && config.level != "off") {
    return invalid_argument("log.level: \"" + config.level + "\" is not one of trace, debug, info, warn, error, off");
  }
  if (config.format != "auto" && config.format != "json" && config.format != "text") {
    return invalid_argument("log.format: \"" + config.format + "\" is not one of auto, json, text");
  }
  json_lines = config.format == "json" || (config.format == "auto" && isatty(STDERR_FILENO) == 0);
  logger().set_level(level);
  if (json_lines) {
    std::string name;
    append_json_string(name, program);
    logger().set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","program":)" + name + R"(,"pid":%P,%v})");
  } else {
    logger().set_pattern("%H:%M:%S.%e %l " + std::string(program) + ": %v");
  }
  return {};
}

void write(Level level, std::string_view event, std::initializer_list<Field> fields) {
  const auto severity = to_spdlog(level);
  if (!logger().should_log(severity)) {
    return;
  }
  std::string line;
  if (json_lines) {
    line += "\"event\":";
    append_json_string(line, event);
    for (const Field& field : fields) {
      line += ',';
      append_json_string(line, field.key);
      line += ':';
      if (field.is_text) {
        append_json_string(line, field.value);
      } else {
        line += field.value;
      }
    }
  } else {
    line += event;
    for (const Field& field : fields) {
      line += ' ';
      line += field.key;
      line += '=';
      line += field.value;
    }
  }
  logger().log(severity, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace merope::log
