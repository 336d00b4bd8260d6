#include "worker/app/progress_estimate.h"

namespace merope::worker {

void ProgressEstimate::begin(double pixels) {
  pixels_ = pixels;
  last_ = clock_.now();
  denoise_ = {};
  decode_ = {};
  decoding_ = false;
}

std::optional<double> ProgressEstimate::step_done(Stage stage, int step, int steps) {
  const Clock::TimePoint now = clock_.now();
  const double took = seconds_between(last_, now);
  last_ = now;
  if (stage == Stage::kDenoise || stage == Stage::kDecode) {
    Measured& measured = stage == Stage::kDenoise ? denoise_ : decode_;
    decoding_ = stage == Stage::kDecode;
    if (step <= 1 || measured.first_step == 0) {
      // The first step pays for warming up; it counts only as long as there is no other.
      measured.first = now;
      measured.first_step = step;
      measured.mean_seconds = step > 0 ? took : 0;
    } else if (step > measured.first_step) {
      measured.mean_seconds = seconds_between(measured.first, now) / (step - measured.first_step);
    }
    measured.left = steps - step;
    if (decoding_ && measured.left == 0 && pixels_ > 0) {
      decode_seconds_per_pixel_ = measured.mean_seconds * steps / pixels_;
    }
  }
  return step > 0 ? std::optional(took) : std::nullopt;
}

std::optional<double> ProgressEstimate::seconds_left() const {
  if (decoding_) {
    const bool measured = decode_.mean_seconds > 0;
    if (!measured && decode_seconds_per_pixel_ == 0) {
      return std::nullopt;
    }
    return measured ? decode_.mean_seconds * decode_.left : decode_seconds_per_pixel_ * pixels_;
  }
  if (denoise_.mean_seconds == 0) {
    return std::nullopt;
  }
  return denoise_.mean_seconds * denoise_.left + decode_seconds_per_pixel_ * pixels_;
}

}  // namespace merope::worker
