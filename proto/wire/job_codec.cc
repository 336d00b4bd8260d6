#include "proto/wire/job_codec.h"

#include <algorithm>

#include <fmt/core.h>

#include "proto/wire/capabilities_codec.h"
#include "proto/wire/generation_codec.h"

namespace merope::wire {
namespace {

constexpr std::uint32_t kSpecVersion = 2;

// The oldest workers that run this spec as it is meant: sigma grids and DPM++ came with version 2.
std::uint32_t version_needed(const GenerationSpec& spec) {
  return spec.sigma_grid || spec.solver == Solver::kDpm2M ? 2 : 1;
}

Error data_loss(std::string message) {
  return {ErrorCode::kDataLoss, std::move(message)};
}

// A stored request has every field set, so the model that it is checked against is made of what it says itself, and the
// limits were the server's business.
ModelDescription model_of(const v1::GenerationRequest& request) {
  ModelDescription model;
  model.name = request.model();
  model.encodings = {request.encoding()};
  model.size_multiple = 1;
  return model;
}

constexpr GenerationLimits kNoLimits = {
    .max_frames = 1U << 20U,
    .max_pixels_per_frame = std::uint64_t{1} << 40U,
    .max_pixels_per_clip = std::uint64_t{1} << 60U,
    .max_steps = 1U << 20U,
    .max_prompt_bytes = 1U << 30U,
    .max_picture_bytes = std::uint64_t{1} << 40U,
    .max_message_bytes = std::uint64_t{1} << 40U,
    .max_queued_jobs = 1U << 30U,
};

}  // namespace

std::string encode_stored_spec(const GenerationSpec& spec) {
  v1::StoredSpec stored;
  stored.set_version(version_needed(spec));
  *stored.mutable_request() = serialize_spec(spec);
  return stored.SerializeAsString();
}

std::string encode_stored_input(const v1::ConditioningFrames& conditioning, int n_conditioning_frames) {
  v1::StoredInput stored;
  if (conditioning.source_case() != v1::ConditioningFrames::SOURCE_NOT_SET) {
    *stored.mutable_conditioning() = conditioning;
    stored.mutable_conditioning()->set_clip_frames(
        conditioning.has_mp4_clip() ? static_cast<std::uint32_t>(n_conditioning_frames) : 0);
  }
  return stored.SerializeAsString();
}

Result<StoredJob> parse_stored_job(std::string_view spec, std::string_view input) {
  v1::StoredSpec stored;
  if (!stored.ParseFromArray(spec.data(), static_cast<int>(spec.size()))) {
    return data_loss("stored spec is not readable");
  }
  if (stored.version() < 1 || stored.version() > kSpecVersion) {
    return Error{ErrorCode::kFailedPrecondition,
                 fmt::format("stored spec has version {}, this worker reads 1 to {}", stored.version(), kSpecVersion)};
  }
  v1::StoredInput stored_input;
  if (!stored_input.ParseFromArray(input.data(), static_cast<int>(input.size()))) {
    return data_loss("stored input is not readable");
  }

  v1::GenerationRequest& request = *stored.mutable_request();
  if (request.model().empty() || request.encoding().empty() || request.width() == 0 || request.height() == 0 ||
      request.frames() == 0 || request.fps() == 0 || request.steps() == 0 || !request.has_seed() ||
      !request.has_guidance_scale() || !request.has_shift()) {
    return data_loss("stored spec lacks a field");
  }
  if (stored_input.has_conditioning()) {
    request.mutable_conditioning()->Swap(stored_input.mutable_conditioning());
  }
  const ModelDescription model = model_of(request);
  CheckedRequest checked = check_request(request, {&model, 1}, kNoLimits, 0);
  if (!checked.violations.empty()) {
    return data_loss("stored spec does not hold: " + invalid_fields(checked.violations.take()).message);
  }

  StoredJob job;
  job.spec = std::move(checked.spec);
  v1::ConditioningFrames& conditioning = *request.mutable_conditioning();
  if (conditioning.has_mp4_clip()) {
    if (conditioning.clip_frames() == 0) {
      return data_loss("stored input has a clip, but not how many of its frames are used");
    }
    job.conditioning.mp4_clip = std::move(*conditioning.mutable_mp4_clip());
  }
  for (std::string& file : *conditioning.mutable_pictures()->mutable_files()) {
    job.conditioning.pictures.push_back(std::move(file));
  }
  return job;
}

std::string encode_started(const std::string& worker, std::uint64_t epoch, std::uint32_t attempt) {
  v1::StreamEvent event;
  event.mutable_started()->set_worker(worker);
  event.mutable_started()->set_epoch(epoch);
  event.mutable_started()->set_attempt(attempt);
  return event.SerializeAsString();
}

std::string encode_progress(v1::Stage stage, std::uint32_t step, std::uint32_t steps, std::optional<double> seconds_left) {
  v1::StreamEvent event;
  v1::Progress& progress = *event.mutable_progress();
  progress.set_stage(stage);
  progress.set_step(step);
  progress.set_steps(steps);
  if (seconds_left) {
    progress.set_seconds_left(*seconds_left);
  }
  return event.SerializeAsString();
}

std::string encode_failed(const Error& error) {
  v1::StreamEvent event;
  event.mutable_failed()->set_code(static_cast<int>(error.code));
  event.mutable_failed()->set_message(error.message);
  return event.SerializeAsString();
}

std::vector<std::string> encode_fragment(std::string_view bytes,
                                         std::uint32_t fragment_index,
                                         std::uint32_t first_frame,
                                         std::uint32_t n_frames) {
  std::vector<std::string> parts;
  std::size_t done = 0;
  do {
    const std::size_t size = std::min(kMaxFragmentPartBytes, bytes.size() - done);
    v1::StreamEvent event;
    v1::Fragment& fragment = *event.mutable_fragment();
    fragment.set_data(bytes.data() + done, size);
    done += size;
    fragment.set_fragment_index(fragment_index);
    fragment.set_last_part(done == bytes.size());
    fragment.set_first_frame(first_frame);
    fragment.set_n_frames(n_frames);
    parts.push_back(event.SerializeAsString());
  } while (done < bytes.size());
  return parts;
}

std::string encode_finished(const FinishedSummary& summary) {
  v1::StreamEvent event;
  v1::Finished& finished = *event.mutable_finished();
  finished.set_frames(summary.frames);
  finished.set_seed(summary.seed);
  finished.set_bytes(summary.bytes);
  finished.set_sha256(summary.sha256);
  for (const auto& [stage, seconds] : summary.stage_seconds) {
    v1::StageSeconds& entry = *finished.add_stage_seconds();
    entry.set_stage(stage);
    entry.set_seconds(seconds);
  }
  return event.SerializeAsString();
}

Result<v1::StreamEvent> parse_stream_event(std::string_view bytes) {
  v1::StreamEvent event;
  if (!event.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      event.event_case() == v1::StreamEvent::EVENT_NOT_SET) {
    return data_loss("stored event is not readable");
  }
  return event;
}

std::string encode_announcement(const WorkerDescription& worker) {
  v1::WorkerAnnouncement announcement;
  v1::WorkerInfo& info = *announcement.mutable_info();
  info.set_name(worker.name);
  info.set_device(worker.device);
  info.set_version(worker.version);
  info.set_model(worker.model.name);
  *announcement.mutable_model() = serialize_model(worker.model);
  return announcement.SerializeAsString();
}

Result<WorkerDescription> parse_announcement(std::string_view bytes) {
  v1::WorkerAnnouncement announcement;
  if (!announcement.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return data_loss("announcement of a worker is not readable");
  }
  WorkerDescription worker;
  worker.name = announcement.info().name();
  worker.device = announcement.info().device();
  worker.version = announcement.info().version();
  MEROPE_ASSIGN_OR_RETURN(worker.model, parse_model(announcement.model()));
  return worker;
}

}  // namespace merope::wire
