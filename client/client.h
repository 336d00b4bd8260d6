// The C++ client: submits jobs and follows them until they end, whatever breaks on the way.
//
//   auto client = merope::client::Client::create({.address = "127.0.0.1:50051"});
//   auto job = client->submit(request);
//   auto end = client->watch(job->job_id(), sink);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "client/client_options.h"
#include "client/event_checker.h"
#include "client/event_sink.h"
#include "core/base/result.h"
#include "merope/v1/generation.pb.h"

namespace merope::client {

// How a watched job ended.
struct JobEnd {
  // Why it did not succeed; kCancelled when it was cancelled.
  std::optional<Error> failure;
  // What it says of itself when it did succeed.
  v1::Finished finished;
  // Byte count and SHA-256 of everything received agree with `finished`. False when the watch began in the middle.
  bool verified = false;
};

// Internally locked: any thread may call it, also several at once. Connects with the first call.
//
// Errors of every call: kUnavailable (no server, or it drains), kDeadlineExceeded (ClientOptions::call_timeout), and those
// that generation.proto names; the violations of a refused request are in Error::violations. Unary calls are repeated on
// UNAVAILABLE, with the same request id.
class Client {
 public:
  static std::unique_ptr<Client> create(const ClientOptions& options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // A request without an id gets one, so that repeating the call can not make a second job.
  Result<v1::SubmitResponse> submit(v1::GenerationRequest request);

  // Follows a job to its end. A broken call is taken up again behind the last event received. Errors: those of the service,
  // those of the sink, kDataLoss (a hole in the stream, or other bytes than the job wrote), kCancelled when `stop` was
  // requested. The job goes on in all these cases.
  Result<JobEnd> watch(const std::string& job_id, EventSink& sink, std::stop_token stop = {}, Cursor after = {});

  // submit() and watch(). The sink's first event is Accepted.
  Result<JobEnd> generate(v1::GenerationRequest request, EventSink& sink, std::stop_token stop = {});

  Result<v1::Job> get_job(const std::string& job_id);
  // Newest first. JOB_STATE_UNSPECIFIED = all; limit 0 = the server's default.
  Result<std::vector<v1::Job>> list_jobs(v1::JobState state = v1::JOB_STATE_UNSPECIFIED, std::uint32_t limit = 0);
  // Asks the job to stop and returns it as it is then.
  Result<v1::Job> cancel(const std::string& job_id);
  Result<v1::Capabilities> capabilities();

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace merope::client
