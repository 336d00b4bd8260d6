// Frames in, fragments of the output file out, while later frames do not exist yet.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/media/rgb_frames.h"

namespace merope::media {

enum class ClipFormat {
  kH264,       // libx264 4:2:0, BT.709 limited, fragmented MP4
  kRgbExact,   // libx264rgb qp 0, fragmented MP4: decodes to the same 8-bit RGB
  kPngFrames,  // one PNG file a frame
};

struct ClipSettings {
  ClipFormat format = ClipFormat::kH264;
  int width = 0;
  int height = 0;
  int fps = 24;
  int frames_per_fragment = 8;  // also the key frame distance
  int threads = 1;              // of the encoder; another number gives other bytes
};

// Concatenating all fragments gives the file. The start segment of an MP4 has n_frames 0, and so has the index behind its
// last frame when that frame completed a fragment.
struct ClipFragment {
  std::string bytes;
  int first_frame = 0;
  int n_frames = 0;
};

// One thread at a time.
class ClipWriter {
 public:
  using Sink = std::function<Status(ClipFragment)>;

  // kInvalidArgument for a size that the format can not hold (4:2:0 wants even numbers); kInternal from libav, its text
  // kept.
  static Result<std::unique_ptr<ClipWriter>> open(const ClipSettings& settings, Sink sink);
  virtual ~ClipWriter() = default;

  // Any number of frames of the clip's size. An error of the sink comes back unchanged.
  virtual Status write(const RgbFrames& frames) = 0;
  // Flushes; after it every frame has been handed to the sink.
  virtual Status finish() = 0;
};

}  // namespace merope::media
