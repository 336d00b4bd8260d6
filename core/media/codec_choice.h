// Which encoder writes a format, and with which options: one row each.
#pragma once

extern "C" {
#include <libavutil/pixfmt.h>
}

#include <span>
#include <utility>

#include "core/media/clip_writer.h"

namespace merope::media {

struct CodecChoice {
  ClipFormat format;
  const char* encoder;
  AVPixelFormat pixel_format;
  bool even_size;  // 4:2:0 halves the chroma planes
  AVColorSpace matrix;
  AVColorRange range;
  AVColorTransferCharacteristic transfer;
  std::span<const std::pair<const char*, const char*>> options;
};

// The row of a format that goes into an MP4; null for kPngFrames.
const CodecChoice* find_codec(ClipFormat format);

}  // namespace merope::media
