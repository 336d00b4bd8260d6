// Pictures in memory: plain bytes, no libav inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace merope::media {

// [n_frames, height, width, 3] 8-bit RGB, row-major.
struct RgbFrames {
  int n_frames = 0;
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> pixels;

  std::size_t frame_bytes() const { return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * 3; }
  std::span<const std::uint8_t> frame(int index) const {
    return {pixels.data() + static_cast<std::size_t>(index) * frame_bytes(), frame_bytes()};
  }
};

}  // namespace merope::media
