#include "server/server_app.h"

#include <atomic>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include "core/base/log.h"
#include "server/event_fanout.h"
#include "server/generation_service.h"
#include "server/health.h"
#include "server/model_directory.h"
#include "server/periodic_task.h"
#include "server/server_metrics.h"
#include "server/submit_pool.h"

namespace merope::server {
namespace {

constexpr int kKeepaliveMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kFastestClientPingMs = 10'000;  // a client that pings more often is sent away

bool wants_reflection(const ServerConfig& config) {
  return config.reflection == Reflection::kOn || (config.reflection == Reflection::kLoopback && is_loopback(config.listen));
}

}  // namespace

// In the order of construction; destroyed from the last to the first, so that calls end before the pool that answers them,
// and the pool before the queue that it waits for.
struct ServerApp::Parts {
  Parts(const ServerConfig& given, ServerQueue given_queue)
      : config(given),
        queue(std::move(given_queue)),
        metrics(registry),
        directory(*queue.submitter, clock, metrics),
        health(directory, 3 * given.model_refresh + std::chrono::seconds(5)),
        fanout({given.heartbeat, given.reread, given.slow_reader}, *queue.events, *queue.submitter, clock, metrics),
        pool(given.submit_threads, given.submit_backlog),
        service({*queue.submitter, pool, fanout, directory, clock, metrics}, given.limits, given.max_watchers) {}

  Status listen();
  void reconcile();

  const ServerConfig config;
  ServerQueue queue;
  SystemClock clock;
  MetricsRegistry registry;
  ServerMetrics metrics;
  ModelDirectory directory;
  Health health;
  EventFanout fanout;
  SubmitPool pool;
  GenerationService service;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<AdminHttp> admin;
  std::unique_ptr<PeriodicTask> refresher;
  std::unique_ptr<PeriodicTask> reconciler;
  std::string address;
  bool drained = false;
};

Status ServerApp::Parts::listen() {
  grpc::EnableDefaultHealthCheckService(true);
  if (wants_reflection(config)) {
    // gRPC keeps this for the whole process, so it is asked for only by a server that wants it.
    static const bool once = [] {
      grpc::reflection::InitProtoReflectionServerBuilderPlugin();
      return true;
    }();
    static_cast<void>(once);
  }
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(config.listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const int max_message = static_cast<int>(config.limits.max_message_bytes);
  builder.SetMaxReceiveMessageSize(max_message);
  builder.SetMaxSendMessageSize(max_message);
  builder.SetResourceQuota(grpc::ResourceQuota("merope-server").Resize(config.grpc_memory_bytes));
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second server on the port would share it silently
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, config.max_streams_per_connection);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kFastestClientPingMs);
  server = builder.BuildAndStart();
  if (server == nullptr) {
    return unavailable("gRPC port of " + config.listen + " can not be opened (is it in use?)");
  }
  address = config.listen;
  if (!config.listen.starts_with("unix:")) {
    address = config.listen.substr(0, config.listen.rfind(':')) + ":" + std::to_string(port);
  }
  health.serving(server->GetHealthCheckService());
  return {};
}

void ServerApp::Parts::reconcile() {
  const Result<std::size_t> changed = queue.submitter->reconcile();
  if (changed && *changed > 0) {
    metrics.reconciled_jobs.increment(static_cast<double>(*changed));
    log::warn("jobs were reconciled", {{"jobs", *changed}});
  }  // a queue that is away is reported by the directory
}

Result<std::unique_ptr<ServerApp>> ServerApp::start(const ServerConfig& config, ServerQueue queue) {
  auto parts = std::make_unique<Parts>(config, std::move(queue));
  Parts& p = *parts;
  // The first look is here, so that a server that answers knows its models.
  if (const Status status = p.directory.refresh(); !status) {
    log::warn("queue did not answer at the start", {{"reason", status.error().message}});
  }
  MEROPE_RETURN_IF_ERROR(p.listen());
  auto admin = AdminHttp::start(
      config.admin, p.registry, {.live = [] { return ""; }, .ready = [&p] { return p.health.not_ready(); }});
  if (!admin) {
    p.server->Shutdown();
    return admin.error();
  }
  p.admin = *std::move(admin);
  p.refresher = std::make_unique<PeriodicTask>("refresher", config.model_refresh, [&p] {
    static_cast<void>(p.directory.refresh());  // it remembers and logs its trouble
    p.metrics.submit_backlog.set(static_cast<double>(p.pool.backlog()));
  });
  p.reconciler = std::make_unique<PeriodicTask>("reconciler", config.reconcile, [&p] { p.reconcile(); });
  return std::unique_ptr<ServerApp>(new ServerApp(std::move(parts)));
}

ServerApp::ServerApp(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ServerApp::~ServerApp() {
  drain();
}

const std::string& ServerApp::address() const {
  return parts_->address;
}
int ServerApp::admin_port() const {
  return parts_->admin->port();
}
const MetricsRegistry& ServerApp::metrics() const {
  return parts_->registry;
}

void ServerApp::drain() {
  Parts& p = *parts_;
  if (std::exchange(p.drained, true)) {
    return;
  }
  log::info("drain began", {{"watchers", p.metrics.watchers.value()}});
  p.health.stop_serving();
  std::this_thread::sleep_for(p.config.pre_stop_delay);  // load balancers need a moment to notice
  p.service.start_draining();
  p.fanout.end_all();
  p.server->Shutdown(std::chrono::system_clock::now() + p.config.drain);
  p.server->Wait();
  log::info("drain ended");
}

}  // namespace merope::server
