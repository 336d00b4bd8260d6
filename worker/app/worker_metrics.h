// What a worker counts. Created once; the handles live as long as the registry.
#pragma once

#include "core/base/metrics.h"
#include "worker/engine.h"

namespace merope::worker {

// "denoise", the value of the label `stage`.
const char* stage_name(Stage stage);

struct WorkerMetrics {
  // `backend`: the device's kind, "cpu" or "cuda".
  WorkerMetrics(MetricsRegistry& registry, const std::string& backend);

  Gauge& busy;
  Gauge& draining;
  Gauge& model_load_seconds;
  Histogram& denoise_step_seconds;
  Histogram& video_encode_seconds;  // of a whole job, stage "video_encode"
  Histogram& store_seconds;         // of a whole job, stage "store": time in the queue's writes
  Counter& first_attempts;
  Counter& takeovers;  // attempts after another worker's
  Counter& lease_fenced;
  Counter& lease_expired;
  Counter& lease_stalled;
  Counter& put_retries;
  Counter& queue_errors;
  Counter& frames;
  Counter& fragments;
  Counter& fragment_bytes;
  Counter& backpressure_seconds;  // the engine waited for the encoder or the queue

  Histogram& stage_seconds(Stage stage) const { return *stage_seconds_[static_cast<std::size_t>(stage)]; }

  struct Outcome {
    Counter* finished = nullptr;
    Histogram* wait_seconds = nullptr;
    Histogram* run_seconds = nullptr;
  };
  Outcome succeeded;
  Outcome failed;
  Outcome cancelled;
  Outcome released;
  Outcome lost;

 private:
  Histogram* stage_seconds_[5];
};

}  // namespace merope::worker
