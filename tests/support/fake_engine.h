// A GenerationEngine without a model: frames that follow from the seed, and faults by script. For tests of everything around
// the engine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/queue/job_queue.h"
#include "proto/wire/job_codec.h"
#include "worker/engine.h"

namespace merope::test {

struct FakeScript {
  // Before denoising step `step` (1, 2, ...), on the engine thread: may wait, crash, or turn a clock.
  std::function<void(int step)> before_step = {};
  // Before latent frame `index` (0, 1, ...) is "decoded".
  std::function<void(int index)> before_decode = {};
  // Instead of that denoising step.
  std::optional<std::pair<int, Error>> fail_at = {};
  int frames_missing = 0;  // fewer than the spec asks for
};

class FakeEngine final : public worker::GenerationEngine {
 public:
  explicit FakeEngine(FakeScript script = {});

  const ModelDescription& description() const override { return description_; }
  std::string device() const override { return "cpu"; }
  Result<worker::GenerationReport> generate(const GenerationSpec& spec,
                                            const media::RgbFrames& conditioning,
                                            worker::GenerationObserver& observer) override;

  FakeScript script;
  int n_generations = 0;  // begun

 private:
  ModelDescription description_;
};

// "fake": any even size, 2 steps by default.
ModelDescription fake_model();
// Frame `index` of what FakeEngine makes for this spec; conditioning frames come out as they went in.
media::RgbFrames fake_frame(const GenerationSpec& spec, int index);
// A small job for it: 9 frames of 32x16, two steps, camera moving straight ahead.
GenerationSpec fake_spec();
// As the server would submit it.
queue::NewJob fake_job(const GenerationSpec& spec,
                       const std::string& request_id,
                       const std::vector<std::string>& pictures = {});

// What a client sees of a stream: fragments put together, in order, without a hole. `error`: what is wrong with it.
struct ReadStream {
  std::vector<v1::StreamEvent> events;
  std::string file;   // of the newest epoch
  std::string error;  // empty: seq is 1, 2, 3, ... and every entry parses
  queue::JobRecord record;
  const v1::Finished* finished() const;
  const v1::Failed* failed() const;
};
ReadStream read_stream(queue::JobEventSource& source, const std::string& job_id);

}  // namespace merope::test
