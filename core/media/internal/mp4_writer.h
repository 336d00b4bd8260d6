// H.264 in fragmented MP4: a start segment, then one moof+mdat per group of pictures, handed on when the group's last frame
// has been encoded.
#pragma once

#include <memory>
#include <string>

#include "core/media/clip_writer.h"
#include "core/media/internal/av_handles.h"
#include "core/media/internal/colour.h"

namespace merope::media {

// kInternal unless the frames have the clip's size and as many bytes as they say.
Status check_frame_size(const ClipSettings& settings, const RgbFrames& frames);

namespace internal {

class Mp4Writer final : public ClipWriter {
 public:
  static Result<std::unique_ptr<ClipWriter>> open(const ClipSettings& settings, Sink sink);

  Status write(const RgbFrames& frames) override;
  Status finish() override;

 private:
  Mp4Writer(const ClipSettings& settings, Sink sink) : settings_(settings), sink_(std::move(sink)) {}

  Status open_encoder();
  Status open_muxer();
  Status encode(std::span<const std::uint8_t> rgb);
  Status take_packets();
  Status end_fragment();
  Status hand_on(int n_frames);
  static int collect(void* opaque, std::uint8_t* bytes, int size);

  const ClipSettings settings_;
  Sink sink_;
  std::string collected_;  // what the muxer has written since the last fragment
  CodecContextPtr encoder_;
  IoPtr io_;
  MuxerPtr muxer_;
  AVStream* stream_ = nullptr;  // of muxer_
  FramePtr frame_;
  PacketPtr packet_;
  ColourConverter converter_;
  int n_encoded_ = 0;    // frames given to the encoder
  int n_muxed_ = 0;      // packets out of it
  int n_handed_on_ = 0;  // frames in fragments
};

}  // namespace internal
}  // namespace merope::media
