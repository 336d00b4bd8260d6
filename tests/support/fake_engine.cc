#include "tests/support/fake_engine.h"

#include <algorithm>
#include <utility>

#include "core/base/sha256.h"

namespace merope::test {

using worker::Stage;

ModelDescription fake_model() {
  ModelDescription model;
  model.name = "fake";
  model.architecture = "none";
  model.encodings = {"merope"};
  model.size_multiple = 2;
  model.default_width = 32;
  model.default_height = 16;
  model.default_steps = 2;
  model.default_guidance_scale = 1.0;
  model.trained = false;
  return model;
}

FakeEngine::FakeEngine(FakeScript wanted) : script(std::move(wanted)), description_(fake_model()) {}

media::RgbFrames fake_frame(const GenerationSpec& spec, int index) {
  media::RgbFrames frame{1, spec.height, spec.width, {}};
  frame.pixels.reserve(frame.frame_bytes());
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      frame.pixels.push_back(static_cast<std::uint8_t>(spec.seed * 37 + static_cast<std::uint64_t>(index) * 5));
      frame.pixels.push_back(static_cast<std::uint8_t>(x * 255 / spec.width));
      frame.pixels.push_back(static_cast<std::uint8_t>(y * 255 / spec.height));
    }
  }
  return frame;
}

Result<worker::GenerationReport> FakeEngine::generate(const GenerationSpec& spec,
                                                      const media::RgbFrames& conditioning,
                                                      worker::GenerationObserver& observer) {
  ++n_generations;
  if (conditioning.n_frames != spec.n_conditioning_frames) {
    return internal_error("the fake engine got another number of conditioning frames than the spec says");
  }
  observer.progress(Stage::kPrepare, 1, 1);
  for (int step = 1; step <= spec.steps; ++step) {
    MEROPE_RETURN_IF_ERROR(observer.may_continue());
    if (script.before_step) {
      script.before_step(step);
    }
    if (script.fail_at && script.fail_at->first == step) {
      return script.fail_at->second;
    }
    observer.progress(Stage::kDenoise, step, spec.steps);
  }
  // As a causal decoder: one frame, then four at a time.
  const int n_frames = spec.n_frames - script.frames_missing;
  const int n_latent = (n_frames + 6) / 4;
  int done = 0;
  for (int latent = 0; latent < n_latent && done < n_frames; ++latent) {
    MEROPE_RETURN_IF_ERROR(observer.may_continue());
    if (script.before_decode) {
      script.before_decode(latent);
    }
    media::RgbFrames frames{0, spec.height, spec.width, {}};
    const int end = std::min(n_frames, latent == 0 ? 1 : done + 4);
    for (; done < end; ++done) {
      const media::RgbFrames made = done < conditioning.n_frames ? media::RgbFrames() : fake_frame(spec, done);
      const auto pixels = done < conditioning.n_frames ? conditioning.frame(done) : made.frame(0);
      frames.pixels.insert(frames.pixels.end(), pixels.begin(), pixels.end());
      ++frames.n_frames;
    }
    MEROPE_RETURN_IF_ERROR(observer.frames(std::move(frames)));
    observer.progress(Stage::kDecode, latent + 1, n_latent);
  }
  return worker::GenerationReport{n_frames, {{Stage::kDenoise, 0.25}, {Stage::kDecode, 0.125}}};
}

GenerationSpec fake_spec() {
  GenerationSpec spec;
  spec.model = "fake";
  spec.encoding = "merope";
  spec.width = 32;
  spec.height = 16;
  spec.n_frames = 9;
  spec.fps = 24;
  spec.seed = 7;
  spec.steps = 2;
  spec.output = OutputFormat::kRgbExact;
  for (int i = 0; i < spec.n_frames; ++i) {
    camera::TrajectoryFrame frame;
    frame.c2w.centre = {0, 0, 0.5 * i};
    frame.time_s = i / 24.0;
    frame.lens = {spec.width, spec.height, camera::Pinhole{30, 30, 16, 8}};
    spec.trajectory.frames.push_back(frame);
  }
  return spec;
}

queue::NewJob fake_job(const GenerationSpec& spec, const std::string& request_id, const std::vector<std::string>& pictures) {
  v1::ConditioningFrames conditioning;
  for (const std::string& picture : pictures) {
    conditioning.mutable_pictures()->add_files(picture);
  }
  queue::NewJob job;
  job.request_id = request_id;
  job.spec = wire::encode_stored_spec(spec);
  job.input = wire::encode_stored_input(conditioning, spec.n_conditioning_frames);
  job.digest = sha256_hex(job.spec + job.input);
  return job;
}

const v1::Finished* ReadStream::finished() const {
  return !events.empty() && events.back().has_finished() ? &events.back().finished() : nullptr;
}

const v1::Failed* ReadStream::failed() const {
  return !events.empty() && events.back().has_failed() ? &events.back().failed() : nullptr;
}

ReadStream read_stream(queue::JobEventSource& source, const std::string& job_id) {
  ReadStream stream;
  queue::Cursor cursor;
  while (true) {
    auto batch = source.read(job_id, cursor, 100);
    if (!batch) {
      stream.error = batch.error().message;
      return stream;
    }
    stream.record = batch->record;
    if (batch->entries.empty()) {
      break;
    }
    for (const queue::StreamEntry& entry : batch->entries) {
      if (entry.cursor.epoch != cursor.epoch) {
        cursor = {entry.cursor.epoch, 0};
        stream.events.clear();
        stream.file.clear();
      }
      if (entry.cursor.seq != cursor.seq + 1) {
        stream.error = "hole after seq " + std::to_string(cursor.seq);
        return stream;
      }
      cursor = entry.cursor;
      auto event = wire::parse_stream_event(entry.bytes);
      if (!event) {
        stream.error = event.error().message;
        return stream;
      }
      stream.file += event->fragment().data();
      stream.events.push_back(std::move(*event));
    }
  }
  if (queue::is_terminal(stream.record.state) && stream.record.last_seq != cursor.seq) {
    stream.error =
        "the stream ends at seq " + std::to_string(cursor.seq) + ", the job at " + std::to_string(stream.record.last_seq);
  }
  return stream;
}

}  // namespace merope::test
