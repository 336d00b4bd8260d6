// Every metric of the server, created once. Names and meanings are also in deploy/README.md.
#pragma once

#include <array>
#include <cstddef>

#include "core/base/error.h"
#include "core/base/metrics.h"

namespace merope::server {

enum class Method { kSubmit, kWatch, kGenerate, kGetJob, kListJobs, kCancel, kGetCapabilities };
inline constexpr std::array<const char*, 7> kMethodNames = {
    "Submit", "Watch", "Generate", "GetJob", "ListJobs", "Cancel", "GetCapabilities"};

// Any thread may use it; `registry` must outlive it.
struct ServerMetrics {
  explicit ServerMetrics(MetricsRegistry& registry)
      : accepted(submitted(registry, "accepted")),
        duplicate(submitted(registry, "duplicate")),
        refused(submitted(registry, "refused")),
        watchers(registry.gauge("merope_server_watchers", "Streaming calls open now")),
        submit_backlog(registry.gauge("merope_server_submit_backlog", "Calls that wait for a thread of the submit pool")),
        events_sent(registry.counter("merope_server_events_total", "Events written to streaming calls")),
        slow_readers(
            registry.counter("merope_server_slow_readers_total", "Streaming calls ended because the client did not read")),
        backpressure_seconds(registry.counter("merope_stream_backpressure_seconds_total",
                                              "Time that streams waited for the slower side",
                                              {{"side", "client"}})),
        reconciled_jobs(registry.counter("merope_server_reconciled_jobs_total",
                                         "Jobs put back or ended by the reconciler: lost leases, waits that were over")),
        queue_up(registry.gauge("merope_server_queue_up", "1 while the queue answers")),
        queue_depth(registry.gauge("merope_queue_depth", "Jobs waiting; every server exports it, so take the maximum")),
        queue_running(registry.gauge("merope_queue_running_jobs", "Jobs running; take the maximum over servers")),
        queue_oldest_seconds(registry.gauge("merope_queue_oldest_seconds", "Age of the job that has waited longest")),
        workers(registry.gauge("merope_queue_workers", "Workers alive; take the maximum over servers")) {
    for (std::size_t method = 0; method < kMethodNames.size(); ++method) {
      seconds_[method] = &registry.histogram("merope_server_request_seconds",
                                             "Time from a call's arrival to its end",
                                             seconds_buckets(),
                                             {{"method", kMethodNames[method]}});
      for (std::size_t code = 0; code < kCodes; ++code) {
        requests_[method][code] =
            &registry.counter("merope_server_requests_total",
                              "Calls that ended",
                              {{"method", kMethodNames[method]},
                               {"code", code == 0 ? "OK" : std::string(to_string(static_cast<ErrorCode>(code)))}});
      }
    }
  }

  // `code` is a gRPC status code.
  void call_ended(Method method, int code, double seconds) {
    const auto row = static_cast<std::size_t>(method);
    const auto column = code >= 0 && static_cast<std::size_t>(code) < kCodes ? static_cast<std::size_t>(code) : 2;
    requests_[row][column]->increment();
    seconds_[row]->observe(seconds);
  }

  Counter& accepted;
  Counter& duplicate;
  Counter& refused;
  Gauge& watchers;
  Gauge& submit_backlog;
  Counter& events_sent;
  Counter& slow_readers;
  Counter& backpressure_seconds;
  Counter& reconciled_jobs;
  Gauge& queue_up;
  Gauge& queue_depth;
  Gauge& queue_running;
  Gauge& queue_oldest_seconds;
  Gauge& workers;

 private:
  static constexpr std::size_t kCodes = 17;

  static Counter& submitted(MetricsRegistry& registry, const char* outcome) {
    return registry.counter(
        "merope_server_jobs_submitted_total", "Submissions by what became of them", {{"outcome", outcome}});
  }

  std::array<Histogram*, kMethodNames.size()> seconds_{};
  std::array<std::array<Counter*, kCodes>, kMethodNames.size()> requests_{};
};

}  // namespace merope::server
