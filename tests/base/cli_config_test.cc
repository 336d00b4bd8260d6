#include "core/base/cli_config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include <CLI/CLI.hpp>

#include "core/base/exit_codes.h"

namespace merope {
namespace {

struct Parsed {
  int port = 1;
  std::optional<int> exit_code;
};

Parsed parse(std::vector<const char*> arguments) {
  CLI::App app("test", "program");
  setup_program(app);
  Parsed parsed;
  app.add_option("--listen-port", parsed.port, "port");
  arguments.insert(arguments.begin(), "program");
  parsed.exit_code = parse_program(app, static_cast<int>(arguments.size()), arguments.data());
  return parsed;
}

TEST(CliConfig, FlagWinsOverEnvironmentOverFileOverDefault) {
  const std::string file = testing::TempDir() + "merope_cli_config.toml";
  std::ofstream(file) << "listen-port = 4\n";
  EXPECT_EQ(parse({}).port, 1);
  EXPECT_EQ(parse({"--config", file.c_str()}).port, 4);
  setenv("MEROPE_LISTEN_PORT", "3", 1);
  EXPECT_EQ(parse({"--config", file.c_str()}).port, 3);
  EXPECT_EQ(parse({"--config", file.c_str(), "--listen-port", "2"}).port, 2);
  testing::internal::CaptureStdout();
  EXPECT_EQ(parse({"--print-config"}).exit_code, kExitOk);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "listen-port = \"3\"  # environment\n");
  unsetenv("MEROPE_LISTEN_PORT");
}

TEST(CliConfig, NamesOfTheFileThatAreNoFlagsEndWithUsage) {
  const std::string file = testing::TempDir() + "merope_cli_config_extra.toml";
  std::ofstream(file) << "listen-prot = 4\n";
  testing::internal::CaptureStderr();
  EXPECT_EQ(parse({"--config", file.c_str()}).exit_code, kExitUsage);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("listen-prot"), std::string::npos);
}

TEST(CliConfig, WrongValuesAndUnknownFlagsEndWithUsage) {
  EXPECT_EQ(parse({"--listen-port", "abc"}).exit_code, kExitUsage);
  EXPECT_EQ(parse({"--no-such-flag"}).exit_code, kExitUsage);
}

}  // namespace
}  // namespace merope
