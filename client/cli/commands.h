// The subcommands. Each prints its result on standard output, everything else on standard error, and returns the exit code.
#pragma once

#include "client/cli/cli_options.h"
#include "client/cli/interrupts.h"
#include "client/client.h"

namespace merope::cli {

struct Session {
  client::Client& client;
  Interrupts& interrupts;
  bool json = false;
};

int run_submit(Session& session, const SubmitOptions& options);
int run_watch(Session& session, const WatchOptions& options);
int run_status(Session& session, const StatusOptions& options);
int run_list(Session& session, const ListOptions& options);
int run_cancel(Session& session, const CancelOptions& options);
int run_capabilities(Session& session, const CapabilitiesOptions& options);

// Prints the error and returns its exit code.
int fail(const Session& session, const Error& error);
// Writes to standard output at once; one call is one line or one table.
void print(const std::string& text);

}  // namespace merope::cli
