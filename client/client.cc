#include "client/client.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>
#include <utility>

#include <fmt/core.h>
#include <grpcpp/grpcpp.h>

#include "core/base/ids.h"
#include "google/rpc/status.pb.h"
#include "merope/v1/generation.grpc.pb.h"

namespace merope::client {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kMaxMessageBytes = 64 << 20;

// The same for every method: one that was never begun or never answered may be sent again. gRPC repeats a stream only until
// its first message, which is why watch() has a loop of its own.
constexpr const char* kServiceConfig = R"({
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [{
    "name": [{"service": "merope.v1.GenerationService"}],
    "retryPolicy": {
      "maxAttempts": 4,
      "initialBackoff": "0.1s",
      "maxBackoff": "2s",
      "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }]
})";

bool is_local(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("localhost:") || address.starts_with("[::1]") ||
         address.starts_with("unix:");
}

std::shared_ptr<grpc::Channel> make_channel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(kServiceConfig);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(-1);  // too large is the server's to say: it knows its limit
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 1);
  // gRPC gives up repeating a call whose request is larger than this, and its default of 256 KiB is less than one picture.
  arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, 2 * kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // The default pause after a failed connection grows to two minutes, longer than a server needs to restart.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5'000);
  if (is_local(address)) {
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // http_proxy is for the outside
  }
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

Error to_error(const grpc::Status& status) {
  Error error{static_cast<ErrorCode>(status.error_code()), status.error_message(), {}};
  google::rpc::Status details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details())) {
    google::rpc::BadRequest bad_request;
    for (const auto& detail : details.details()) {
      if (detail.UnpackTo(&bad_request)) {
        for (const auto& violation : bad_request.field_violations()) {
          error.violations.push_back({violation.field(), violation.description()});
        }
      }
    }
  }
  return error;
}

// Returns early when `stop` is requested.
void wait(milliseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any condition;
  std::unique_lock lock(mutex);
  condition.wait_for(lock, stop, duration, [] { return false; });
}

milliseconds with_chance(milliseconds pause) {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_int_distribution<std::int64_t> extra(0, pause.count() / 5);
  return pause + milliseconds(extra(random));
}

}  // namespace

struct Client::Impl {
  explicit Impl(const ClientOptions& client_options)
      : options(client_options), channel(make_channel(options.address)), stub(v1::GenerationService::NewStub(channel)) {}

  Status reach_server() {
    if (options.wait_for_server.count() > 0 &&
        !channel->WaitForConnected(std::chrono::system_clock::now() + options.wait_for_server)) {
      return unavailable(fmt::format("no server at {} within {} ms", options.address, options.wait_for_server.count()));
    }
    return {};
  }

  Error named(Error error) const {
    if (error.code == ErrorCode::kUnavailable) {
      error.message = options.address + ": " + error.message;
    }
    return error;
  }

  template <typename Response, typename Request>
  Result<Response> call(grpc::Status (v1::GenerationService::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                        const Request& request) {
    MEROPE_RETURN_IF_ERROR(reach_server());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + options.call_timeout);
    Response response;
    if (const grpc::Status status = (stub.get()->*method)(&context, request, &response); !status.ok()) {
      return named(to_error(status));
    }
    return response;
  }

  // What one watch call came to.
  struct Attempt {
    bool any = false;           // an event was received
    Status taken;               // error of the checker or the sink: final
    Status call;                // error of the call: may be taken up again
    std::optional<JobEnd> end;  // the job's last event was among them
  };

  Attempt watch_once(const std::string& job_id, EventChecker& checker, EventSink& sink, const std::stop_token& stop) {
    Attempt attempt;
    grpc::ClientContext context;
    const std::stop_callback cancel_call(stop, [&context] { context.TryCancel(); });
    v1::WatchRequest request;
    request.set_job_id(job_id);
    if (checker.cursor() != Cursor{}) {
      request.mutable_after()->set_epoch(checker.cursor().epoch);
      request.mutable_after()->set_seq(checker.cursor().seq);
    }
    const auto reader = stub->Watch(&context, request);
    v1::JobEvent event;
    while (attempt.taken && !attempt.end && reader->Read(&event)) {
      attempt.any = true;
      attempt.taken = take(event, checker, sink, attempt.end);
    }
    if (!attempt.taken || attempt.end) {
      context.TryCancel();
    }
    if (const grpc::Status status = reader->Finish(); !status.ok()) {
      attempt.call = named(to_error(status));
    } else {
      attempt.call = unavailable(fmt::format("{}: the stream of {} ended before the job", options.address, job_id));
    }
    return attempt;
  }

  static Status take(const v1::JobEvent& event, EventChecker& checker, EventSink& sink, std::optional<JobEnd>& end) {
    MEROPE_ASSIGN_OR_RETURN(const EventChecker::Verdict verdict, checker.accept(event));
    if (verdict == EventChecker::Verdict::kRepeat) {
      return {};
    }
    if (verdict == EventChecker::Verdict::kDeliverAfterRestart) {
      v1::JobEvent restarted;
      restarted.set_job_id(event.job_id());
      restarted.mutable_cursor()->set_epoch(event.cursor().epoch());
      restarted.mutable_restarted()->set_epoch(event.cursor().epoch());
      MEROPE_RETURN_IF_ERROR(sink.on_event(restarted));
    }
    MEROPE_RETURN_IF_ERROR(sink.on_event(event));
    if (event.has_finished()) {
      end = JobEnd{std::nullopt, event.finished(), checker.verified()};
    } else if (event.has_failed()) {
      const int code = event.failed().code();
      const bool known =
          code >= static_cast<int>(ErrorCode::kCancelled) && code <= static_cast<int>(ErrorCode::kUnauthenticated);
      end =
          JobEnd{Error{known ? static_cast<ErrorCode>(code) : ErrorCode::kUnknown, event.failed().message(), {}}, {}, false};
    }
    return {};
  }

  const ClientOptions options;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<v1::GenerationService::Stub> stub;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

std::unique_ptr<Client> Client::create(const ClientOptions& options) {
  return std::unique_ptr<Client>(new Client(std::make_unique<Impl>(options)));
}

Result<v1::SubmitResponse> Client::submit(v1::GenerationRequest request) {
  if (request.request_id().empty()) {
    request.set_request_id(random_id("req"));
  }
  return impl_->call(&v1::GenerationService::Stub::Submit, request);
}

Result<JobEnd> Client::watch(const std::string& job_id, EventSink& sink, std::stop_token stop, Cursor after) {
  MEROPE_RETURN_IF_ERROR(impl_->reach_server());
  const ClientOptions& options = impl_->options;
  EventChecker checker(after);
  milliseconds pause = options.reattach_first;
  auto last_event = Clock::now();
  while (true) {
    Impl::Attempt attempt = impl_->watch_once(job_id, checker, sink, stop);
    MEROPE_RETURN_IF_ERROR(attempt.taken);
    if (attempt.end) {
      return *std::move(attempt.end);
    }
    if (attempt.any) {
      last_event = Clock::now();
      pause = options.reattach_first;
    }
    const Error& reason = attempt.call.error();
    if (!stop.stop_requested()) {
      if (!is_retryable(reason.code) || Clock::now() - last_event + pause > options.reattach_for) {
        return reason;
      }
      const milliseconds this_pause = with_chance(pause);
      sink.on_reattach(reason, this_pause);
      pause = std::min(2 * pause, options.reattach_most);
      wait(this_pause, stop);
    }
    if (stop.stop_requested()) {
      return Error{ErrorCode::kCancelled, "stopped watching " + job_id + "; the job goes on", {}};
    }
  }
}

Result<JobEnd> Client::generate(v1::GenerationRequest request, EventSink& sink, std::stop_token stop) {
  MEROPE_ASSIGN_OR_RETURN(const v1::SubmitResponse response, submit(std::move(request)));
  v1::JobEvent accepted;
  accepted.set_job_id(response.job_id());
  accepted.mutable_accepted()->set_request_id(response.request_id());
  accepted.mutable_accepted()->set_duplicate(response.duplicate());
  MEROPE_RETURN_IF_ERROR(sink.on_event(accepted));
  return watch(response.job_id(), sink, std::move(stop));
}

Result<v1::Job> Client::get_job(const std::string& job_id) {
  v1::GetJobRequest request;
  request.set_job_id(job_id);
  return impl_->call(&v1::GenerationService::Stub::GetJob, request);
}

Result<std::vector<v1::Job>> Client::list_jobs(v1::JobState state, std::uint32_t limit) {
  v1::ListJobsRequest request;
  request.set_state(state);
  request.set_limit(limit);
  MEROPE_ASSIGN_OR_RETURN(const v1::ListJobsResponse response, impl_->call(&v1::GenerationService::Stub::ListJobs, request));
  return std::vector<v1::Job>(response.jobs().begin(), response.jobs().end());
}

Result<v1::Job> Client::cancel(const std::string& job_id) {
  v1::CancelRequest request;
  request.set_job_id(job_id);
  return impl_->call(&v1::GenerationService::Stub::Cancel, request);
}

Result<v1::Capabilities> Client::capabilities() {
  return impl_->call(&v1::GenerationService::Stub::GetCapabilities, v1::GetCapabilitiesRequest());
}

}  // namespace merope::client
