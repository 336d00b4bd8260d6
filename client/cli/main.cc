// merope-cli: submits jobs to a MeRoPE service and follows them.
#include <type_traits>
#include <variant>

#include "client/cli/commands.h"

namespace {

using namespace merope::cli;  // NOLINT(google-build-using-namespace): the program is this namespace

struct Run {
  Session& session;

  int operator()(const SubmitOptions& options) const { return run_submit(session, options); }
  int operator()(const WatchOptions& options) const { return run_watch(session, options); }
  int operator()(const StatusOptions& options) const { return run_status(session, options); }
  int operator()(const ListOptions& options) const { return run_list(session, options); }
  int operator()(const CancelOptions& options) const { return run_cancel(session, options); }
  int operator()(const CapabilitiesOptions& options) const { return run_capabilities(session, options); }
};

}  // namespace

int main(int argc, char** argv) {
  const std::variant<CommandLine, int> parsed = parse_command_line(argc, argv);
  if (const int* exit_code = std::get_if<int>(&parsed)) {
    return *exit_code;
  }
  const CommandLine& line = std::get<CommandLine>(parsed);
  Interrupts interrupts;
  const auto client = merope::client::Client::create(line.client);
  Session session{*client, interrupts, line.json};
  return std::visit(Run{session}, line.command);
}
