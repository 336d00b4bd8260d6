// How much one request may ask for. The server's configuration sets it, GetCapabilities tells it to clients.
#pragma once

#include <cstdint>

namespace merope {

struct GenerationLimits {
  std::uint32_t max_frames = 257;                                // RGB frames of a clip
  std::uint64_t max_pixels_per_frame = std::uint64_t{1} << 21U;  // 1920 x 1088 fits
  std::uint64_t max_pixels_per_clip = std::uint64_t{1} << 28U;   // 289 frames of 1280 x 720
  std::uint32_t max_steps = 200;                                 // denoising steps
  std::uint32_t max_prompt_bytes = 8192;                         // of each of the two prompts
  std::uint64_t max_picture_bytes = std::uint64_t{16} << 20U;    // of one PNG or JPEG file
  std::uint64_t max_message_bytes = std::uint64_t{64} << 20U;    // of one gRPC message, both ways
  std::uint32_t max_queued_jobs = 1000;                          // jobs that wait
};

}  // namespace merope
