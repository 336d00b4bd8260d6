#include "core/media/clip_writer.h"

#include <string>

#include "core/media/codec_choice.h"
#include "core/media/internal/mp4_writer.h"
#include "core/media/internal/png_codec.h"

namespace merope::media {
namespace {

class PngWriter final : public ClipWriter {
 public:
  PngWriter(const ClipSettings& settings, std::unique_ptr<internal::PngEncoder> encoder, Sink sink)
      : settings_(settings), encoder_(std::move(encoder)), sink_(std::move(sink)) {}

  Status write(const RgbFrames& frames) override {
    MEROPE_RETURN_IF_ERROR(check_frame_size(settings_, frames));
    for (int i = 0; i < frames.n_frames; ++i) {
      MEROPE_ASSIGN_OR_RETURN(std::string bytes, encoder_->encode(frames.frame(i)));
      MEROPE_RETURN_IF_ERROR(sink_({std::move(bytes), n_written_, 1}));
      ++n_written_;
    }
    return {};
  }

  Status finish() override { return {}; }

 private:
  const ClipSettings settings_;
  std::unique_ptr<internal::PngEncoder> encoder_;
  Sink sink_;
  int n_written_ = 0;
};

Status check_settings(const ClipSettings& settings) {
  if (settings.width < 1 || settings.height < 1 || settings.width > 16'384 || settings.height > 16'384) {
    return invalid_argument("a clip of " + std::to_string(settings.width) + "x" + std::to_string(settings.height) +
                            " pixels can not be written (1x1 to 16384x16384)");
  }
  if (settings.fps < 1 || settings.frames_per_fragment < 1 || settings.threads < 1) {
    return invalid_argument("frames a second, frames of a fragment and encoder threads are at least 1");
  }
  const CodecChoice* codec = find_codec(settings.format);
  if (codec != nullptr && codec->even_size && (settings.width % 2 != 0 || settings.height % 2 != 0)) {
    return invalid_argument("H.264 4:2:0 holds even sizes only, not " + std::to_string(settings.width) + "x" +
                            std::to_string(settings.height));
  }
  return {};
}

}  // namespace

Status check_frame_size(const ClipSettings& settings, const RgbFrames& frames) {
  if (frames.width != settings.width || frames.height != settings.height ||
      frames.pixels.size() != frames.frame_bytes() * static_cast<std::size_t>(frames.n_frames)) {
    return internal_error("frames of " + std::to_string(frames.width) + "x" + std::to_string(frames.height) +
                          " do not belong to a clip of " + std::to_string(settings.width) + "x" +
                          std::to_string(settings.height));
  }
  return {};
}

Result<std::unique_ptr<ClipWriter>> ClipWriter::open(const ClipSettings& settings, Sink sink) {
  MEROPE_RETURN_IF_ERROR(check_settings(settings));
  if (settings.format == ClipFormat::kPngFrames) {
    MEROPE_ASSIGN_OR_RETURN(auto encoder, internal::PngEncoder::open(settings.width, settings.height));
    return std::unique_ptr<ClipWriter>(std::make_unique<PngWriter>(settings, std::move(encoder), std::move(sink)));
  }
  return internal::Mp4Writer::open(settings, std::move(sink));
}

}  // namespace merope::media
