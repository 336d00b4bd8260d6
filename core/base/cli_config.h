// Command line, environment and configuration file, the way all our programs read them.
//
// A flag wins over an environment variable, that over the TOML file of --config, that over the default. --print-config prints
// the effective values and where each came from.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace merope {

// Call before any option is added. Adds --config, --print-config and --version; defaults become part of --help.
void setup_program(CLI::App& app);

// Adds an option in seconds, 0 to 1e6, for a field in milliseconds, which must outlive the app.
void add_seconds(CLI::App& app, const std::string& name, std::chrono::milliseconds& field, const std::string& description);

// Parses. An exit code when the program is to end now: 0 after --help, --version or --print-config, kExitUsage after a
// sentence about what is wrong. An option --redis-url is also read from MEROPE_REDIS_URL. Options whose name contains
// "password" or "token" are printed as ***.
std::optional<int> parse_program(CLI::App& app, int argc, const char* const* argv);

}  // namespace merope
