#include "worker/app/conditioning_frames.h"

#include <string>

#include "core/media/picture_decoder.h"

namespace merope::worker {
namespace {

Error named(const std::string& field, Error error) {
  if (error.code == ErrorCode::kInvalidArgument) {
    error.violations = {{field, error.message}};
  }
  error.message = field + ": " + error.message;
  return error;
}

}  // namespace

Result<media::RgbFrames> decode_conditioning(const wire::StoredJob& job, const std::function<Status()>& between) {
  const GenerationSpec& spec = job.spec;
  media::RgbFrames frames{0, spec.height, spec.width, {}};
  const auto wanted = static_cast<std::size_t>(spec.n_conditioning_frames);
  if (wanted == 0) {
    return frames;
  }
  if (!job.conditioning.mp4_clip.empty()) {
    MEROPE_RETURN_IF_ERROR(between());
    auto clip = media::decode_clip(job.conditioning.mp4_clip, spec.width, spec.height, spec.n_conditioning_frames);
    if (!clip) {
      return named("conditioning.mp4_clip", std::move(clip).error());
    }
    return clip;
  }
  const auto& files = job.conditioning.pictures;
  if (files.size() != wanted) {
    return Error{
        ErrorCode::kDataLoss,
        "stored input has " + std::to_string(files.size()) + " pictures, the job begins with " + std::to_string(wanted)};
  }
  frames.pixels.reserve(frames.frame_bytes() * files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    MEROPE_RETURN_IF_ERROR(between());
    auto picture = media::decode_picture(files[i], spec.width, spec.height);
    if (!picture) {
      return named("conditioning.pictures.files[" + std::to_string(i) + "]", std::move(picture).error());
    }
    frames.pixels.insert(frames.pixels.end(), picture->pixels.begin(), picture->pixels.end());
    ++frames.n_frames;
  }
  return frames;
}

}  // namespace merope::worker
