#include <fmt/core.h>

#include "client/cli/commands.h"
#include "client/cli/exit_status.h"
#include "client/cli/follow.h"
#include "client/cli/printing.h"
#include "client/cli/request_builder.h"
#include "core/base/ids.h"

namespace merope::cli {

int run_submit(Session& session, const SubmitOptions& options) {
  auto request = build_request(options, [&] { return session.client.capabilities(); });
  if (!request) {
    return fail(session, request.error());
  }
  if (request->request_id().empty()) {
    request->set_request_id(random_id("req"));
  }
  const bool png = options.output == "png";
  std::unique_ptr<client::FragmentStore> store;
  if (!options.detach && !options.follow.out.empty()) {
    // Before the job is queued: a clip that has no place to go is not worth making.
    auto opened = open_output(options.follow.out, "", png);
    if (!opened) {
      return fail(session, opened.error());
    }
    store = *std::move(opened);
  }

  const Result<v1::SubmitResponse> response = session.client.submit(*request);
  if (!response) {
    return fail(session, response.error());
  }
  if (options.detach) {
    print(session.json ? json_line(*response) : response->job_id() + "\n");
    return kExitOk;
  }
  v1::JobEvent accepted;
  accepted.set_job_id(response->job_id());
  accepted.mutable_accepted()->set_request_id(response->request_id());
  accepted.mutable_accepted()->set_duplicate(response->duplicate());
  if (session.json) {
    print(json_line(accepted));
  } else {
    std::fputs(
        fmt::format("{} {}\n", response->job_id(), response->duplicate() ? "was accepted before" : "accepted").c_str(),
        stderr);
  }
  return follow_job(session, response->job_id(), options.follow, std::move(store), png);
}

}  // namespace merope::cli
