// Between 8-bit RGB and what codecs work in. The matrix is always named: swscale's own default is BT.601, and a picture that
// is converted with one matrix and tagged with another has shifted colours.
#pragma once

#include <cstdint>
#include <span>

#include "core/media/internal/av_handles.h"

namespace merope::media::internal {

// One thread at a time.
class ColourConverter {
 public:
  // [height, width, 3] RGB into `frame`, whose size, format, colour space and range are set and whose planes are allocated.
  Status from_rgb(std::span<const std::uint8_t> rgb, AVFrame& frame);
  // A decoded frame to [height, width, 3] RGB. Alpha is dropped. A frame that does not say its matrix is taken as players
  // do: BT.709 from 720 lines on, else BT.601.
  Status to_rgb(const AVFrame& frame, std::span<std::uint8_t> rgb);

 private:
  SwsPtr context_;  // kept while size and format stay the same
};

}  // namespace merope::media::internal
