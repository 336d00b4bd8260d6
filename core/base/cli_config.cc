#include "core/base/cli_config.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/base/exit_codes.h"

namespace merope {
namespace {

constexpr const char* kPrintConfig = "--print-config";

std::string environment_name(const std::string& long_name) {
  std::string name = "MEROPE_";
  for (const char c : long_name) {
    name += c == '-' || c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

bool given_on_command_line(const std::string& long_name, const std::vector<std::string>& arguments) {
  const std::string flag = "--" + long_name;
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    return argument == flag || argument.starts_with(flag + "=");
  });
}

bool is_secret(const std::string& name) {
  return name.find("password") != std::string::npos || name.find("token") != std::string::npos;
}

std::string joined(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) {
    text += text.empty() ? value : "," + value;
  }
  return text;
}

}  // namespace

void setup_program(CLI::App& app) {
  app.option_defaults()->always_capture_default();
  app.set_config("--config", "", "TOML file with the same names as the flags");
  app.allow_config_extras(CLI::config_extras_mode::error);  // a name that is misspelt must not be passed over
  app.add_flag(kPrintConfig)->description("Print the effective configuration and where each value came from, and exit");
  app.set_version_flag("--version", std::string("merope ") + MEROPE_VERSION);
}

void add_seconds(CLI::App& app, const std::string& name, std::chrono::milliseconds& field, const std::string& description) {
  app.add_option_function<double>(
         name,
         [&field](const double& seconds) { field = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)); },
         description)
      ->default_str(CLI::detail::to_string(static_cast<double>(field.count()) / 1000))
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("SECONDS");
}

std::optional<int> parse_program(CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);

  // CLI11 reads the environment after the file; a value from the environment becomes an argument instead, so that it wins.
  std::set<std::string> from_flag;
  std::set<std::string> from_environment;
  std::vector<std::string> environment_arguments;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (given_on_command_line(name, arguments)) {
        from_flag.insert(name);
      } else if (const char* value = std::getenv(environment_name(name).c_str());
                 value != nullptr && option->get_configurable()) {
        from_environment.insert(name);
        environment_arguments.push_back("--" + name + "=" + value);
      }
    }
  }
  arguments.insert(arguments.begin(), environment_arguments.begin(), environment_arguments.end());
  std::reverse(arguments.begin(), arguments.end());  // the order CLI11's vector overload wants

  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Success& success) {
    return app.exit(success);  // help or version
  } catch (const CLI::ParseError& failure) {
    std::fprintf(stderr, "%s: %s (see --help)\n", app.get_name().c_str(), failure.what());
    return kExitUsage;
  }

  if (app.count(kPrintConfig) == 0) {
    return std::nullopt;
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || !option->get_configurable()) {
      continue;
    }
    const std::string& name = option->get_lnames().front();
    if (name == "help" || name == "version" || name == "config" || "--" + name == kPrintConfig) {
      continue;
    }
    const char* source = from_flag.contains(name)          ? "flag"
                         : from_environment.contains(name) ? "environment"
                         : option->count() > 0             ? "file"
                                                           : "default";
    std::string value = option->count() > 0 ? joined(option->results()) : option->get_default_str();
    if (is_secret(name) && !value.empty()) {
      value = "***";
    }
    std::printf("%s = \"%s\"  # %s\n", name.c_str(), value.c_str(), source);
  }
  return kExitOk;
}

}  // namespace merope
