// The generator as the job loop sees it: a spec and frames in, frames out. No ATen in sight.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/media/rgb_frames.h"
#include "proto/spec/generation_spec.h"

namespace merope::worker {

enum class Stage { kPrepare, kText, kEncode, kDenoise, kDecode };

// Where a running generation reports to and asks whether to go on. Called from the engine thread.
class GenerationObserver {
 public:
  virtual ~GenerationObserver() = default;
  // `step` of `steps` of a stage are done.
  virtual void progress(Stage stage, int step, int steps) = 0;
  // Asked between steps: an error (kCancelled, kDeadlineExceeded, kAborted) stops the generation, which returns it.
  virtual Status may_continue() = 0;
  // The next frames of the clip, in order. May wait: that is the back-pressure. An error stops the generation.
  virtual Status frames(media::RgbFrames frames) = 0;
};

struct GenerationReport {
  int n_frames = 0;
  std::vector<std::pair<Stage, double>> stage_seconds;
};

// One job at a time, always from the same thread. Never throws: errors of the device, the weights or memory come back.
class GenerationEngine {
 public:
  virtual ~GenerationEngine() = default;
  virtual const ModelDescription& description() const = 0;
  virtual std::string device() const = 0;  // "cpu", "cuda:0 (NVIDIA H200)"
  // `conditioning` holds spec.n_conditioning_frames frames of the clip's size.
  virtual Result<GenerationReport> generate(const GenerationSpec& spec,
                                            const media::RgbFrames& conditioning,
                                            GenerationObserver& observer) = 0;
};

}  // namespace merope::worker
