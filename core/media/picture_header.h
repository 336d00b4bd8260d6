// What a picture or clip file says of itself, read without decoding a pixel: so a bomb, a cut-off or a mislabelled file is
// refused at the door. No libav inside.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/base/result.h"

namespace merope::media {

enum class FileFormat { kPng, kJpeg, kMp4 };
std::string_view to_string(FileFormat format);  // "png"

struct PictureHeader {
  FileFormat format = FileFormat::kPng;
  int width = 0;
  int height = 0;
};

// PNG: every chunk lies inside the file, CRCs hold, IHDR is first and IEND last. JPEG: segments up to the frame header, and
// the end marker. kInvalidArgument with a sentence otherwise ("is neither PNG nor JPEG", "PNG is cut off in chunk IDAT").
Result<PictureHeader> read_picture_header(std::string_view bytes);

struct ClipHeader {
  int width = 0;
  int height = 0;
  int n_frames = 0;
};

// MP4: ftyp first, every top-level box inside the file, a video track with its size and number of samples (plain or
// fragmented).
Result<ClipHeader> read_clip_header(std::string_view bytes);

}  // namespace merope::media
