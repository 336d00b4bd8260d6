#include <cstdio>

#include "client/cli/commands.h"
#include "client/cli/exit_status.h"
#include "client/cli/follow.h"
#include "client/cli/printing.h"

namespace merope::cli {
namespace {

v1::JobState state_from(const std::string& name) {
  for (int value = v1::JobState_MIN; value <= v1::JobState_MAX; ++value) {
    if (v1::JobState_IsValid(value) && state_name(static_cast<v1::JobState>(value)) == name) {
      return static_cast<v1::JobState>(value);
    }
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

}  // namespace

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

int fail(const Session& session, const Error& error) {
  if (session.json) {
    print(json_line(error));
  }
  std::fputs(("merope-cli: " + error_text(error)).c_str(), stderr);
  return exit_code_for(error.code);
}

int run_watch(Session& session, const WatchOptions& options) {
  // Asked first, so that a server that is away or a job that is not there is said at once and not after many tries.
  const Result<v1::Job> job = session.client.get_job(options.job_id);
  if (!job) {
    return fail(session, job.error());
  }
  return follow_job(session, options.job_id, options.follow, nullptr, false);
}

int run_status(Session& session, const StatusOptions& options) {
  const Result<v1::Job> job = session.client.get_job(options.job_id);
  if (!job) {
    return fail(session, job.error());
  }
  print(session.json ? json_line(*job) : job_text(*job));
  return kExitOk;
}

int run_list(Session& session, const ListOptions& options) {
  const auto jobs = session.client.list_jobs(state_from(options.state), options.limit);
  if (!jobs) {
    return fail(session, jobs.error());
  }
  if (session.json) {
    for (const v1::Job& job : *jobs) {
      print(json_line(job));
    }
    return kExitOk;
  }
  print(job_table(*jobs));
  return kExitOk;
}

int run_cancel(Session& session, const CancelOptions& options) {
  const Result<v1::Job> job = session.client.cancel(options.job_id);
  if (!job) {
    return fail(session, job.error());
  }
  print(session.json ? json_line(*job) : job_text(*job));
  return kExitOk;
}

int run_capabilities(Session& session, const CapabilitiesOptions& /*options*/) {
  const Result<v1::Capabilities> capabilities = session.client.capabilities();
  if (!capabilities) {
    return fail(session, capabilities.error());
  }
  print(session.json ? json_line(*capabilities) : capabilities_text(*capabilities));
  return kExitOk;
}

}  // namespace merope::cli
