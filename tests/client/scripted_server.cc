#include "tests/client/scripted_server.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "core/base/check.h"
#include "core/base/sha256.h"
#include "google/rpc/status.pb.h"
#include "merope/v1/generation.grpc.pb.h"

namespace merope::client {
namespace {

grpc::Status to_status(const Error& error) {
  google::rpc::Status details;
  details.set_code(static_cast<int>(error.code));
  details.set_message(error.message);
  if (!error.violations.empty()) {
    google::rpc::BadRequest bad_request;
    for (const FieldViolation& violation : error.violations) {
      auto* field = bad_request.add_field_violations();
      field->set_field(violation.field);
      field->set_description(violation.description);
    }
    details.add_details()->PackFrom(bad_request);
  }
  return {static_cast<grpc::StatusCode>(error.code), error.message, details.SerializeAsString()};
}

}  // namespace

struct ScriptedServer::Impl final : v1::GenerationService::Service {
  grpc::Status Submit(grpc::ServerContext*, const v1::GenerationRequest* request, v1::SubmitResponse* response) override {
    const std::lock_guard lock(mutex);
    submitted.push_back(*request);
    if (!submit_errors.empty()) {
      const Error error = submit_errors.front();
      submit_errors.pop_front();
      return to_status(error);
    }
    response->set_job_id("job-1");
    response->set_request_id(request->request_id());
    return grpc::Status::OK;
  }

  grpc::Status Watch(grpc::ServerContext* context,
                     const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::JobEvent>* writer) override {
    WatchScript script;
    {
      const std::lock_guard lock(mutex);
      watched_after.push_back({request->after().epoch(), request->after().seq()});
      if (watch_scripts.empty()) {
        return {grpc::StatusCode::FAILED_PRECONDITION, "the script is over"};
      }
      script = watch_scripts.front();
      watch_scripts.pop_front();
    }
    for (const v1::JobEvent& event : script.events) {
      writer->Write(event);
    }
    {
      const std::lock_guard lock(mutex);
      ++n_watches_written;
    }
    changed.notify_all();
    std::unique_lock lock(mutex);
    while (script.hang && !stopping && !context->IsCancelled()) {
      // IsCancelled() can only be asked; a short wait instead of a busy loop.
      changed.wait_for(lock, std::chrono::milliseconds(2));
    }
    return script.error ? to_status(*script.error) : grpc::Status::OK;
  }

  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request, v1::Job* job) override {
    if (request->job_id() != "job-1") {
      return {grpc::StatusCode::NOT_FOUND, "no job " + request->job_id()};
    }
    job->set_job_id("job-1");
    job->set_state(v1::JOB_STATE_RUNNING);
    return grpc::Status::OK;
  }

  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request, v1::ListJobsResponse* response) override {
    for (std::uint32_t i = 0; i < request->limit(); ++i) {
      response->add_jobs()->set_state(request->state());
    }
    return grpc::Status::OK;
  }

  grpc::Status Cancel(grpc::ServerContext*, const v1::CancelRequest* request, v1::Job* job) override {
    const std::lock_guard lock(mutex);
    cancelled.push_back(request->job_id());
    job->set_job_id(request->job_id());
    job->set_cancel_requested(true);
    return grpc::Status::OK;
  }

  grpc::Status GetCapabilities(grpc::ServerContext*,
                               const v1::GetCapabilitiesRequest*,
                               v1::Capabilities* response) override {
    auto* model = response->add_models();
    model->set_name("toy");
    model->set_default_width(64);
    model->set_default_height(32);
    model->set_default_fps(10);
    return grpc::Status::OK;
  }

  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::deque<Error> submit_errors;
  std::deque<WatchScript> watch_scripts;
  std::vector<v1::GenerationRequest> submitted;
  std::vector<Cursor> watched_after;
  std::vector<std::string> cancelled;
  std::size_t n_watches_written = 0;
  bool stopping = false;
  std::string address;
  std::unique_ptr<grpc::Server> server;
};

ScriptedServer::ScriptedServer() : impl_(std::make_unique<Impl>()) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(64 << 20);
  builder.RegisterService(impl_.get());
  impl_->server = builder.BuildAndStart();
  MEROPE_CHECK(impl_->server != nullptr, "no port on 127.0.0.1");
  impl_->address = "127.0.0.1:" + std::to_string(port);
}

ScriptedServer::~ScriptedServer() {
  stop();
}

void ScriptedServer::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.notify_all();
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server->Wait();
}

const std::string& ScriptedServer::address() const {
  return impl_->address;
}

void ScriptedServer::answer_submit(std::vector<Error> errors) {
  const std::lock_guard lock(impl_->mutex);
  impl_->submit_errors.assign(errors.begin(), errors.end());
}

void ScriptedServer::script_watch(std::vector<WatchScript> scripts) {
  const std::lock_guard lock(impl_->mutex);
  impl_->watch_scripts.assign(scripts.begin(), scripts.end());
}

std::vector<v1::GenerationRequest> ScriptedServer::submitted() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->submitted;
}

std::vector<Cursor> ScriptedServer::watched_after() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->watched_after;
}

std::vector<std::string> ScriptedServer::cancelled() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->cancelled;
}

bool ScriptedServer::wait_for_watch(std::size_t n) const {
  std::unique_lock lock(impl_->mutex);
  return impl_->changed.wait_for(lock, std::chrono::seconds(10), [&] { return impl_->n_watches_written >= n; });
}

v1::JobEvent event_at(std::uint64_t epoch, std::uint64_t seq) {
  v1::JobEvent event;
  event.set_job_id("job-1");
  event.mutable_cursor()->set_epoch(epoch);
  event.mutable_cursor()->set_seq(seq);
  return event;
}

v1::JobEvent started_event(std::uint64_t epoch, std::uint64_t seq) {
  v1::JobEvent event = event_at(epoch, seq);
  event.mutable_started()->set_epoch(epoch);
  event.mutable_started()->set_attempt(static_cast<std::uint32_t>(epoch));
  event.mutable_started()->set_worker("worker-a");
  return event;
}

v1::JobEvent fragment_event(std::uint64_t epoch, std::uint64_t seq, const std::string& data, bool last_part) {
  v1::JobEvent event = event_at(epoch, seq);
  event.mutable_fragment()->set_data(data);
  event.mutable_fragment()->set_last_part(last_part);
  return event;
}

v1::JobEvent finished_event(std::uint64_t epoch, std::uint64_t seq, const std::string& all_bytes) {
  v1::JobEvent event = event_at(epoch, seq);
  event.mutable_finished()->set_frames(5);
  event.mutable_finished()->set_bytes(all_bytes.size());
  event.mutable_finished()->set_sha256(sha256_hex(all_bytes));
  return event;
}

v1::JobEvent failed_event(std::uint64_t epoch, std::uint64_t seq, ErrorCode code, const std::string& message) {
  v1::JobEvent event = event_at(epoch, seq);
  event.mutable_failed()->set_code(static_cast<int>(code));
  event.mutable_failed()->set_message(message);
  return event;
}

v1::JobEvent restarted_event(std::uint64_t epoch) {
  v1::JobEvent event = event_at(epoch, 0);
  event.mutable_restarted()->set_epoch(epoch);
  return event;
}

}  // namespace merope::client
