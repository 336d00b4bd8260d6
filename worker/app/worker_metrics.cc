#include "worker/app/worker_metrics.h"

namespace merope::worker {
namespace {

constexpr Stage kStages[] = {Stage::kPrepare, Stage::kText, Stage::kEncode, Stage::kDenoise, Stage::kDecode};

Histogram& stage_histogram(MetricsRegistry& registry, const char* stage) {
  return registry.histogram(
      "merope_worker_stage_seconds", "Seconds that one job spent in a stage", seconds_buckets(), {{"stage", stage}});
}

Counter& lease_lost(MetricsRegistry& registry, const char* reason) {
  return registry.counter("merope_worker_lease_lost_total", "Jobs that this worker had to give up", {{"reason", reason}});
}

Counter& attempts(MetricsRegistry& registry, const char* reason) {
  return registry.counter(
      "merope_job_attempts_total", "Attempts begun: the first of a job, or after a lost lease", {{"reason", reason}});
}

WorkerMetrics::Outcome outcome(MetricsRegistry& registry, const char* name) {
  const MetricLabels labels = {{"outcome", name}};
  return {
      &registry.counter("merope_job_finished_total", "Attempts that ended, by how", labels),
      &registry.histogram("merope_job_wait_seconds", "From submission to the claim", seconds_buckets(), labels),
      &registry.histogram("merope_job_run_seconds", "From the claim to the end of the attempt", seconds_buckets(), labels),
  };
}

}  // namespace

const char* stage_name(Stage stage) {
  switch (stage) {
    case Stage::kPrepare: return "prepare";
    case Stage::kText: return "text";
    case Stage::kEncode: return "encode";
    case Stage::kDenoise: return "denoise";
    case Stage::kDecode: return "decode";
  }
  return "unknown";
}

WorkerMetrics::WorkerMetrics(MetricsRegistry& registry, const std::string& backend)
    : busy(registry.gauge("merope_worker_busy", "1 while a job runs")),
      draining(registry.gauge("merope_worker_draining", "1 after the request to stop")),
      model_load_seconds(registry.gauge("merope_worker_model_load_seconds", "Seconds that loading the model took")),
      denoise_step_seconds(registry.histogram(
          "merope_worker_denoise_step_seconds", "Seconds of one denoising step", seconds_buckets(), {{"backend", backend}})),
      video_encode_seconds(stage_histogram(registry, "video_encode")),
      store_seconds(stage_histogram(registry, "store")),
      first_attempts(attempts(registry, "first")),
      takeovers(attempts(registry, "lease_lost")),
      lease_fenced(lease_lost(registry, "fenced")),
      lease_expired(lease_lost(registry, "expired")),
      lease_stalled(lease_lost(registry, "stalled")),
      put_retries(registry.counter("merope_worker_put_retries_total", "Writes to the queue that were tried again")),
      queue_errors(registry.counter("merope_worker_queue_errors_total", "Claims, beats and announcements that failed")),
      frames(registry.counter("merope_worker_frames_total", "RGB frames published")),
      fragments(registry.counter("merope_worker_fragments_total", "Fragments published")),
      fragment_bytes(registry.counter("merope_worker_fragment_bytes_total", "Bytes of published fragments")),
      backpressure_seconds(registry.counter(
          "merope_stream_backpressure_seconds_total", "Seconds that a stage waited for the next one", {{"side", "worker"}})),
      succeeded(outcome(registry, "succeeded")),
      failed(outcome(registry, "failed")),
      cancelled(outcome(registry, "cancelled")),
      released(outcome(registry, "released")),
      lost(outcome(registry, "lost")) {
  for (const Stage stage : kStages) {
    stage_seconds_[static_cast<std::size_t>(stage)] = &stage_histogram(registry, stage_name(stage));
  }
}

}  // namespace merope::worker
