// PNG files out of RGB frames, and the one thing that libav does not check on the way in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/media/internal/av_handles.h"

namespace merope::media::internal {

// One thread at a time; any number of frames of the same size.
class PngEncoder {
 public:
  static Result<std::unique_ptr<PngEncoder>> open(int width, int height);
  // [height, width, 3] RGB.
  Result<std::string> encode(std::span<const std::uint8_t> rgb);

 private:
  PngEncoder() = default;
  CodecContextPtr codec_;
  FramePtr frame_;
  PacketPtr packet_;
};

// Whether the compressed rows of a PNG that read_png_header accepts are all there: libav leaves missing rows black and says
// nothing. Inflates through a small buffer.
Status check_png_rows(std::string_view bytes);

}  // namespace merope::media::internal
