#include "server/request_limits.h"

#include <string>

#include <fmt/core.h>

#include "core/media/picture_header.h"

namespace merope::server {
namespace {

// The clip's size is 0 when it is not known; then there is nothing to compare with.
void check_size(int width, int height, const std::string& field, wire::CheckedRequest& checked) {
  const GenerationSpec& spec = checked.spec;
  if (spec.width != 0 && (width != spec.width || height != spec.height)) {
    checked.violations.add(
        field,
        fmt::format("is {}x{}, but the clip is {}x{}; pictures are not stretched", width, height, spec.width, spec.height));
  }
}

void check_picture(const std::string& file,
                   const std::string& field,
                   const GenerationLimits& limits,
                   wire::CheckedRequest& checked) {
  if (file.size() > limits.max_picture_bytes) {
    checked.violations.add(field,
                           fmt::format("has {} bytes; at most {} are allowed", file.size(), limits.max_picture_bytes));
    return;
  }
  const Result<media::PictureHeader> header = media::read_picture_header(file);
  if (!header) {
    checked.violations.add(field, header.error().message);
    return;
  }
  check_size(header->width, header->height, field, checked);
}

void check_clip(const v1::ConditioningFrames& conditioning, wire::CheckedRequest& checked) {
  const Result<media::ClipHeader> header = media::read_clip_header(conditioning.mp4_clip());
  if (!header) {
    checked.violations.add("conditioning.mp4_clip", header.error().message);
    return;
  }
  check_size(header->width, header->height, "conditioning.mp4_clip", checked);
  if (conditioning.clip_frames() == 0) {
    wire::check_conditioning_count(
        static_cast<std::uint64_t>(header->n_frames), checked.spec.n_frames, "conditioning.mp4_clip", checked.violations);
    checked.spec.n_conditioning_frames = header->n_frames;
  } else if (conditioning.clip_frames() > static_cast<std::uint32_t>(header->n_frames)) {
    checked.violations.add(
        "conditioning.clip_frames",
        fmt::format("{} frames are asked for, but the clip has {}", conditioning.clip_frames(), header->n_frames));
  }
}

}  // namespace

void check_conditioning_files(const v1::ConditioningFrames& conditioning,
                              const GenerationLimits& limits,
                              wire::CheckedRequest& checked) {
  if (conditioning.has_mp4_clip()) {
    check_clip(conditioning, checked);
    return;
  }
  // One over any limit is enough to read no further: the count was named already.
  const int n_files = conditioning.pictures().files_size();
  if (static_cast<std::uint32_t>(n_files) > limits.max_frames) {
    return;
  }
  for (int i = 0; i < n_files && !checked.violations.full(); ++i) {
    check_picture(conditioning.pictures().files(i), fmt::format("conditioning.pictures.files[{}]", i), limits, checked);
  }
}

}  // namespace merope::server
