#include "server/generation_service.h"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/core.h>

#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/camera/model/lens.h"
#include "proto/wire/capabilities_codec.h"
#include "proto/wire/generation_codec.h"
#include "proto/wire/job_codec.h"
#include "server/admission.h"
#include "server/request_limits.h"
#include "server/stream_position.h"
#include "server/unary_call.h"
#include "server/watch_reactor.h"

namespace merope::server {
namespace {

constexpr std::chrono::milliseconds kCapabilitiesAge{1000};
constexpr std::uint32_t kDefaultListed = 100;
constexpr std::uint32_t kMaxListed = 1000;

Error pool_is_full() {
  return {ErrorCode::kResourceExhausted, "too many calls wait for the queue; try again"};
}

Error no_models() {
  return unavailable("no worker has announced a model yet, so requests can not be checked; try again when one is up");
}

std::optional<Error> wrong_job_id(const std::string& job_id) {
  if (is_valid_id(job_id)) {
    return std::nullopt;
  }
  return invalid_fields({{"job_id", "must be 1 to 128 characters of A-Z a-z 0-9 . _ -"}});
}

std::uint64_t random_seed() {
  thread_local std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32U) | device();
}

queue::Priority queue_priority(v1::Priority priority) {
  switch (priority) {
    case v1::PRIORITY_HIGH: return queue::Priority::kHigh;
    case v1::PRIORITY_LOW: return queue::Priority::kLow;
    default: return queue::Priority::kNormal;
  }
}

// Empty = all. An error for a state that this build does not know.
Result<std::optional<queue::JobState>> queue_state(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_UNSPECIFIED: return std::optional<queue::JobState>();
    case v1::JOB_STATE_QUEUED: return std::optional(queue::JobState::kQueued);
    case v1::JOB_STATE_RUNNING: return std::optional(queue::JobState::kRunning);
    case v1::JOB_STATE_SUCCEEDED: return std::optional(queue::JobState::kSucceeded);
    case v1::JOB_STATE_FAILED: return std::optional(queue::JobState::kFailed);
    case v1::JOB_STATE_CANCELLED: return std::optional(queue::JobState::kCancelled);
    case v1::JOB_STATE_EXPIRED: return std::optional(queue::JobState::kExpired);
    default: return invalid_fields({{"state", fmt::format("unknown value {}", static_cast<int>(state))}});
  }
}

// Keeps a call's request alive while the pool reads it. The call may have ended before its turn came.
template <typename Call>
class Hold {
 public:
  explicit Hold(Call& call) : call_(call), held_(call.hold()) {}
  ~Hold() {
    if (held_) {
      call_.release();
    }
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  explicit operator bool() const { return held_; }

 private:
  Call& call_;
  const bool held_;
};

}  // namespace

std::optional<Error> GenerationService::refused(const grpc::CallbackServerContext& context, bool streams) const {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(context.deadline() - std::chrono::system_clock::now());
  return refuse({.draining = draining_,
                 .time_left = left,
                 .watchers = static_cast<std::size_t>(parts_.metrics.watchers.value()),
                 .max_watchers = max_watchers_,
                 .streams = streams});
}

template <typename Response, typename Work>
grpc::ServerUnaryReactor* GenerationService::answer_in_pool(Method method,
                                                            grpc::CallbackServerContext* context,
                                                            Response* response,
                                                            Work work) {
  auto call = UnaryCall<Response>::start(method, response, parts_.clock, parts_.metrics);
  if (auto error = refused(*context, false)) {
    call->finish(*std::move(error));
    return call.get();
  }
  const bool taken = parts_.pool.try_run([call, work = std::move(work)] {
    if (!call->is_over()) {
      call->finish(work());
    }
  });
  if (!taken) {
    call->finish(pool_is_full());
  }
  return call.get();
}

// --- Submit, Watch, Generate
// ------------------------------------------------------------------------------------------------

Result<queue::NewJob> GenerationService::prepare(const v1::GenerationRequest& request) const {
  auto directory = parts_.directory.newest();
  const auto knows = [&](const std::string& name) {
    return std::any_of(
        directory->models.begin(), directory->models.end(), [&](const auto& model) { return model.name == name; });
  };
  if (directory == nullptr || directory->models.empty() || (!request.model().empty() && !knows(request.model()))) {
    MEROPE_ASSIGN_OR_RETURN(directory, parts_.directory.fresh(std::chrono::milliseconds(0)));
  }
  if (directory->models.empty()) {
    return no_models();
  }

  wire::CheckedRequest checked = wire::check_request(request, directory->models, limits_, random_seed());
  check_conditioning_files(request.conditioning(), limits_, checked);
  if (!checked.violations.empty()) {
    return invalid_fields(checked.violations.take());
  }
  queue::NewJob job;
  job.request_id = checked.terms.request_id.empty() ? random_id("req") : checked.terms.request_id;
  job.digest = wire::request_digest(request);
  job.priority = queue_priority(checked.terms.priority);
  job.max_queue_wait = checked.terms.max_queue_wait;
  job.max_run_time = checked.terms.max_run_time;
  job.spec = wire::encode_stored_spec(checked.spec);
  job.input = wire::encode_stored_input(request.conditioning(), checked.spec.n_conditioning_frames);
  return job;
}

Result<v1::SubmitResponse> GenerationService::enqueue(const queue::NewJob& job) const {
  MEROPE_ASSIGN_OR_RETURN(const queue::SubmitOutcome outcome, parts_.submitter.submit(job));
  (outcome.duplicate ? parts_.metrics.duplicate : parts_.metrics.accepted).increment();
  log::info("job accepted",
            {{"job", outcome.job_id},
             {"epoch", 0},
             {"request", job.request_id},
             {"duplicate", outcome.duplicate},
             {"priority", queue::to_string(job.priority)},
             {"input_bytes", job.input.size()}});
  v1::SubmitResponse response;
  response.set_job_id(outcome.job_id);
  response.set_request_id(job.request_id);
  response.set_duplicate(outcome.duplicate);
  return response;
}

grpc::ServerUnaryReactor* GenerationService::Submit(grpc::CallbackServerContext* context,
                                                    const v1::GenerationRequest* request,
                                                    v1::SubmitResponse* response) {
  auto call = UnaryCall<v1::SubmitResponse>::start(Method::kSubmit, response, parts_.clock, parts_.metrics);
  if (auto error = refused(*context, false)) {
    parts_.metrics.refused.increment();
    call->finish(*std::move(error));
    return call.get();
  }
  const bool taken = parts_.pool.try_run([this, call, request] {
    Result<queue::NewJob> job = internal_error("not prepared");
    if (const Hold hold(*call); hold) {
      job = prepare(*request);
    } else {
      return;
    }
    // From here on the request is not needed. A call that ends now may leave a job behind: its retry finds it.
    Result<v1::SubmitResponse> result = job ? enqueue(*job) : Result<v1::SubmitResponse>(job.error());
    if (!result) {
      parts_.metrics.refused.increment();
    }
    call->finish(std::move(result));
  });
  if (!taken) {
    parts_.metrics.refused.increment();
    call->finish(pool_is_full());
  }
  return call.get();
}

grpc::ServerWriteReactor<v1::JobEvent>* GenerationService::Watch(grpc::CallbackServerContext* context,
                                                                 const v1::WatchRequest* request) {
  auto error = refused(*context, true);
  auto call = WatchReactor::start(Method::kWatch, context, parts_.clock, parts_.metrics);
  if (!error) {
    error = wrong_job_id(request->job_id());
  }
  if (error) {
    call->end(std::move(error));
    return call.get();
  }
  call->on_room([&fanout = parts_.fanout, job_id = request->job_id()] { fanout.room(job_id); });
  parts_.fanout.watch(request->job_id(), {request->after().epoch(), request->after().seq()}, call);
  return call.get();
}

grpc::ServerWriteReactor<v1::JobEvent>* GenerationService::Generate(grpc::CallbackServerContext* context,
                                                                    const v1::GenerationRequest* request) {
  auto error = refused(*context, true);
  auto call = WatchReactor::start(Method::kGenerate, context, parts_.clock, parts_.metrics);
  if (error) {
    parts_.metrics.refused.increment();
    call->end(std::move(error));
    return call.get();
  }
  const bool taken = parts_.pool.try_run([this, call, request] {
    Result<queue::NewJob> job = internal_error("not prepared");
    if (const Hold hold(*call); hold) {
      job = prepare(*request);
    } else {
      return;
    }
    const Result<v1::SubmitResponse> accepted = job ? enqueue(*job) : Result<v1::SubmitResponse>(job.error());
    if (!accepted) {
      parts_.metrics.refused.increment();
      call->end(accepted.error());
      return;
    }
    call->on_room([&fanout = parts_.fanout, job_id = accepted->job_id()] { fanout.room(job_id); });
    parts_.fanout.watch(
        accepted->job_id(), {}, call, EventFanout::Acceptance{accepted->request_id(), accepted->duplicate()});
  });
  if (!taken) {
    parts_.metrics.refused.increment();
    call->end(pool_is_full());
  }
  return call.get();
}

// --- GetJob, ListJobs, Cancel, GetCapabilities
// ------------------------------------------------------------------------------

grpc::ServerUnaryReactor* GenerationService::GetJob(grpc::CallbackServerContext* context,
                                                    const v1::GetJobRequest* request,
                                                    v1::Job* response) {
  return answer_in_pool(Method::kGetJob, context, response, [this, job_id = request->job_id()]() -> Result<v1::Job> {
    if (auto error = wrong_job_id(job_id)) {
      return *std::move(error);
    }
    MEROPE_ASSIGN_OR_RETURN(const queue::JobRecord record, parts_.submitter.get(job_id));
    return to_v1(record);
  });
}

grpc::ServerUnaryReactor* GenerationService::ListJobs(grpc::CallbackServerContext* context,
                                                      const v1::ListJobsRequest* request,
                                                      v1::ListJobsResponse* response) {
  const auto work = [this, wanted = request->state(), limit = request->limit()]() -> Result<v1::ListJobsResponse> {
    MEROPE_ASSIGN_OR_RETURN(const std::optional<queue::JobState> state, queue_state(wanted));
    if (limit > kMaxListed) {
      return invalid_fields({{"limit", fmt::format("{} is not between 1 and {}", limit, kMaxListed)}});
    }
    MEROPE_ASSIGN_OR_RETURN(const std::vector<queue::JobRecord> records,
                            parts_.submitter.list(state, limit == 0 ? kDefaultListed : limit));
    v1::ListJobsResponse list;
    for (const queue::JobRecord& record : records) {
      *list.add_jobs() = to_v1(record);
    }
    return list;
  };
  return answer_in_pool(Method::kListJobs, context, response, work);
}

grpc::ServerUnaryReactor* GenerationService::Cancel(grpc::CallbackServerContext* context,
                                                    const v1::CancelRequest* request,
                                                    v1::Job* response) {
  return answer_in_pool(Method::kCancel, context, response, [this, job_id = request->job_id()]() -> Result<v1::Job> {
    if (auto error = wrong_job_id(job_id)) {
      return *std::move(error);
    }
    MEROPE_ASSIGN_OR_RETURN(const queue::JobRecord record, parts_.submitter.cancel(job_id));
    log::info("cancel was asked for", {{"job", job_id}, {"epoch", record.epoch}, {"state", queue::to_string(record.state)}});
    return to_v1(record);
  });
}

Result<v1::Capabilities> GenerationService::capabilities() const {
  MEROPE_ASSIGN_OR_RETURN(const auto directory, parts_.directory.fresh(kCapabilitiesAge));
  v1::Capabilities capabilities;
  for (const ModelDescription& model : directory->models) {
    *capabilities.add_models() = wire::serialize_model(model);
  }
  *capabilities.mutable_limits() = wire::serialize_limits(limits_);
  for (const OutputFormat output : {OutputFormat::kH264, OutputFormat::kRgbExact, OutputFormat::kPngFrames}) {
    capabilities.add_outputs(wire::serialize_output(output));
  }
  for (const std::string_view name : camera::camera_model_names()) {
    capabilities.add_camera_models(std::string(name));
  }
  for (const char* format : {"png", "jpeg", "mp4"}) {
    capabilities.add_conditioning_formats(format);
  }
  for (const DirectoryWorker& worker : directory->workers) {
    v1::WorkerInfo& info = *capabilities.add_workers();
    info.set_name(worker.name);
    info.set_device(worker.device);
    info.set_version(worker.version);
    info.set_model(worker.model);
    info.set_current_job(worker.current_job);
  }
  capabilities.set_server_version(MEROPE_VERSION);
  capabilities.set_api_version("merope.v1");
  capabilities.set_jobs_queued(static_cast<std::uint32_t>(directory->stats.queued));
  capabilities.set_jobs_running(static_cast<std::uint32_t>(directory->stats.running));
  return capabilities;
}

grpc::ServerUnaryReactor* GenerationService::GetCapabilities(grpc::CallbackServerContext* context,
                                                             const v1::GetCapabilitiesRequest* /*request*/,
                                                             v1::Capabilities* response) {
  return answer_in_pool(Method::kGetCapabilities, context, response, [this] { return capabilities(); });
}

}  // namespace merope::server
