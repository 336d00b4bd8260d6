// How long the rest of a job takes, from the steps that were measured: of this job, and for stages that have not begun, of
// the worker's last job.
#pragma once

#include <optional>

#include "core/base/clock.h"
#include "worker/engine.h"

namespace merope::worker {

// Used by one thread at a time.
class ProgressEstimate {
 public:
  explicit ProgressEstimate(const Clock& clock) : clock_(clock) {}

  // A job of so many pixels (frames x width x height) begins.
  void begin(double pixels);
  // `step` of `steps` of the stage are done. Returns the seconds that the last step of this stage took; empty for step 0.
  std::optional<double> step_done(Stage stage, int step, int steps);
  // Empty until a denoising step, or a decoded latent frame, has been measured.
  std::optional<double> seconds_left() const;

 private:
  struct Measured {
    Clock::TimePoint first;
    int first_step = 0;
    double mean_seconds = 0;  // 0 = none yet
    int left = 0;
  };

  const Clock& clock_;
  double pixels_ = 0;
  double decode_seconds_per_pixel_ = 0;  // of the jobs before; 0 = unknown
  Clock::TimePoint last_;
  Measured denoise_;
  Measured decode_;
  bool decoding_ = false;
};

}  // namespace merope::worker
