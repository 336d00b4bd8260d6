// An observer that keeps what it is told, and can end a generation.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "worker/engine.h"

namespace merope::worker::test {

struct Event {
  bool is_frames = false;
  Stage stage = Stage::kPrepare;
  int step = 0;
  int steps = 0;
  int n_frames = 0;
};

class RecordingObserver final : public GenerationObserver {
 public:
  void progress(Stage stage, int step, int steps) override { events.push_back({false, stage, step, steps, 0}); }
  Status may_continue() override { return on_may_continue ? on_may_continue() : Status(); }
  Status frames(media::RgbFrames next) override {
    events.push_back({true, Stage::kDecode, 0, 0, next.n_frames});
    clip.height = next.height;
    clip.width = next.width;
    clip.n_frames += next.n_frames;
    clip.pixels.insert(clip.pixels.end(), next.pixels.begin(), next.pixels.end());
    return {};
  }

  int count(Stage stage) const {
    int n = 0;
    for (const Event& event : events) {
      n += !event.is_frames && event.stage == stage ? 1 : 0;
    }
    return n;
  }

  std::function<Status()> on_may_continue;
  std::vector<Event> events;
  media::RgbFrames clip;
};

}  // namespace merope::worker::test
