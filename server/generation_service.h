// The gRPC service. Nothing here waits in a callback of gRPC: what talks to the queue or works through pictures runs in the
// submit pool, what streams is fed by the fan-out.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include "core/base/clock.h"
#include "core/queue/job_queue.h"
#include "merope/v1/generation.grpc.pb.h"
#include "proto/spec/generation_limits.h"
#include "server/event_fanout.h"
#include "server/model_directory.h"
#include "server/server_metrics.h"
#include "server/submit_pool.h"

namespace merope::server {

class GenerationService final : public v1::GenerationService::CallbackService {
 public:
  // Must outlive the service.
  struct Parts {
    queue::JobSubmitter& submitter;
    SubmitPool& pool;
    EventFanout& fanout;
    ModelDirectory& directory;
    const Clock& clock;
    ServerMetrics& metrics;
  };

  GenerationService(const Parts& parts, const GenerationLimits& limits, std::size_t max_watchers)
      : parts_(parts), limits_(limits), max_watchers_(max_watchers) {}

  // From now on every call is refused with kUnavailable. Any thread.
  void start_draining() { draining_ = true; }
  bool draining() const { return draining_; }

  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context,
                                   const v1::GenerationRequest* request,
                                   v1::SubmitResponse* response) override;
  grpc::ServerWriteReactor<v1::JobEvent>* Watch(grpc::CallbackServerContext* context,
                                                const v1::WatchRequest* request) override;
  grpc::ServerWriteReactor<v1::JobEvent>* Generate(grpc::CallbackServerContext* context,
                                                   const v1::GenerationRequest* request) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request,
                                   v1::Job* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context,
                                   const v1::CancelRequest* request,
                                   v1::Job* response) override;
  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const v1::GetCapabilitiesRequest* request,
                                            v1::Capabilities* response) override;

 private:
  // Whether a call that just came is taken in; see admission.h.
  std::optional<Error> refused(const grpc::CallbackServerContext& context, bool streams) const;
  // Queues the work of a unary call; the function runs in the pool and waits for the queue.
  template <typename Response, typename Work>
  grpc::ServerUnaryReactor* answer_in_pool(Method method,
                                           grpc::CallbackServerContext* context,
                                           Response* response,
                                           Work work);

  // In the pool. The two steps of a submission: everything that needs the request, and the round trip.
  Result<queue::NewJob> prepare(const v1::GenerationRequest& request) const;
  Result<v1::SubmitResponse> enqueue(const queue::NewJob& job) const;
  Result<v1::Capabilities> capabilities() const;

  const Parts parts_;
  const GenerationLimits limits_;
  const std::size_t max_watchers_;
  std::atomic<bool> draining_ = false;
};

}  // namespace merope::server
