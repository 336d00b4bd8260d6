#include "core/media/picture_decoder.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/media/internal/av_handles.h"
#include "core/media/internal/colour.h"
#include "core/media/internal/png_codec.h"
#include "core/media/picture_header.h"

namespace merope::media {
namespace {

using namespace internal;  // NOLINT(google-build-using-namespace): the room's own handles

std::string size_text(int width, int height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

Status check_size(int width, int height, int wanted_width, int wanted_height) {
  if (width != wanted_width || height != wanted_height) {
    return invalid_argument("is " + size_text(width, height) + " pixels large, the clip is " +
                            size_text(wanted_width, wanted_height));
  }
  return {};
}

// A decoder that refuses instead of guessing: a damaged picture is an error, not a grey patch.
Result<CodecContextPtr> open_decoder(AVCodecID id, const AVCodecParameters* parameters, int width, int height) {
  const AVCodec* codec = avcodec_find_decoder(id);
  if (codec == nullptr) {
    return internal_error("avcodec_find_decoder: this libavcodec lacks " + std::string(avcodec_get_name(id)));
  }
  CodecContextPtr context(avcodec_alloc_context3(codec));
  if (context == nullptr) {
    return Error{ErrorCode::kResourceExhausted, "out of memory for a decoder"};
  }
  if (parameters != nullptr) {
    if (const int code = avcodec_parameters_to_context(context.get(), parameters); code < 0) {
      return av_error(ErrorCode::kInvalidArgument, "avcodec_parameters_to_context", code);
    }
  }
  context->thread_count = 1;
  context->err_recognition = AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_EXPLODE;
  // The pixels inside may claim another size than the header that was checked. 64: coded sizes are rounded up.
  context->max_pixels = (std::int64_t{width} + 64) * (std::int64_t{height} + 64);
  if (const int code = avcodec_open2(context.get(), codec, nullptr); code < 0) {
    return av_error(ErrorCode::kInvalidArgument, "avcodec_open2", code, codec->name);
  }
  return context;
}

Status check_frame(const AVFrame& frame, int width, int height) {
  if (frame.decode_error_flags != 0 || (frame.flags & AV_FRAME_FLAG_CORRUPT) != 0) {
    return invalid_argument("is damaged: not all of its pixels can be decoded");
  }
  return check_size(frame.width, frame.height, width, height);
}

// A file in memory as libav reads it.
struct MemoryFile {
  std::string_view bytes;
  std::size_t position = 0;

  static int read(void* opaque, std::uint8_t* out, int size) {
    auto& file = *static_cast<MemoryFile*>(opaque);
    const std::size_t n = std::min(static_cast<std::size_t>(size), file.bytes.size() - file.position);
    if (n == 0) {
      return AVERROR_EOF;
    }
    std::memcpy(out, file.bytes.data() + file.position, n);
    file.position += n;
    return static_cast<int>(n);
  }

  static std::int64_t seek(void* opaque, std::int64_t offset, int whence) {
    auto& file = *static_cast<MemoryFile*>(opaque);
    const auto size = static_cast<std::int64_t>(file.bytes.size());
    if ((whence & AVSEEK_SIZE) != 0) {
      return size;
    }
    switch (whence & ~AVSEEK_FORCE) {
      case SEEK_SET: break;
      case SEEK_CUR: offset += static_cast<std::int64_t>(file.position); break;
      case SEEK_END: offset += size; break;
      default: return AVERROR(EINVAL);
    }
    if (offset < 0 || offset > size) {
      return AVERROR(EINVAL);
    }
    file.position = static_cast<std::size_t>(offset);
    return offset;
  }
};

// Takes frames out of a decoder until it wants more input or `frames` is full.
class FrameCollector {
 public:
  FrameCollector(RgbFrames& frames, int wanted) : frames_(frames), wanted_(wanted), frame_(av_frame_alloc()) {}

  bool full() const { return frames_.n_frames == wanted_; }

  Status drain(AVCodecContext& decoder) {
    while (!full()) {
      const int code = avcodec_receive_frame(&decoder, frame_.get());
      if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) {
        return {};
      }
      if (code < 0) {
        return av_error(ErrorCode::kInvalidArgument, "is damaged: frame " + std::to_string(frames_.n_frames), code);
      }
      MEROPE_RETURN_IF_ERROR(check_frame(*frame_, frames_.width, frames_.height));
      frames_.pixels.resize(frames_.pixels.size() + frames_.frame_bytes());
      const std::span<std::uint8_t> last(frames_.pixels.data() + frames_.pixels.size() - frames_.frame_bytes(),
                                         frames_.frame_bytes());
      MEROPE_RETURN_IF_ERROR(converter_.to_rgb(*frame_, last));
      ++frames_.n_frames;
      av_frame_unref(frame_.get());
    }
    return {};
  }

 private:
  RgbFrames& frames_;
  int wanted_;
  FramePtr frame_;
  ColourConverter converter_;
};

Status send(AVCodecContext& decoder, const AVPacket* packet) {
  if (const int code = avcodec_send_packet(&decoder, packet); code < 0) {
    return av_error(ErrorCode::kInvalidArgument, "is damaged", code);
  }
  return {};
}

}  // namespace

Result<RgbFrames> decode_picture(std::string_view bytes, int width, int height) {
  quiet_libav();
  MEROPE_ASSIGN_OR_RETURN(const PictureHeader header, read_picture_header(bytes));
  MEROPE_RETURN_IF_ERROR(check_size(header.width, header.height, width, height));
  if (header.format == FileFormat::kPng) {
    MEROPE_RETURN_IF_ERROR(check_png_rows(bytes));
  }
  const AVCodecID id = header.format == FileFormat::kPng ? AV_CODEC_ID_PNG : AV_CODEC_ID_MJPEG;
  MEROPE_ASSIGN_OR_RETURN(const CodecContextPtr decoder, open_decoder(id, nullptr, width, height));

  // libav's bit readers look a few bytes past the end: the packet brings the zeros that they want.
  PacketPtr packet(av_packet_alloc());
  if (packet == nullptr || av_new_packet(packet.get(), static_cast<int>(bytes.size())) < 0) {
    return Error{ErrorCode::kResourceExhausted, "out of memory for a picture of " + std::to_string(bytes.size()) + " bytes"};
  }
  std::memcpy(packet->data, bytes.data(), bytes.size());
  packet->flags |= AV_PKT_FLAG_KEY;

  RgbFrames frames{0, height, width, {}};
  FrameCollector collector(frames, 1);
  MEROPE_RETURN_IF_ERROR(send(*decoder, packet.get()));
  MEROPE_RETURN_IF_ERROR(collector.drain(*decoder));
  if (!collector.full()) {
    MEROPE_RETURN_IF_ERROR(send(*decoder, nullptr));
    MEROPE_RETURN_IF_ERROR(collector.drain(*decoder));
  }
  if (!collector.full()) {
    return invalid_argument("is damaged: it holds no picture");
  }
  return frames;
}

Result<RgbFrames> decode_clip(std::string_view bytes, int width, int height, int n_frames) {
  quiet_libav();
  MEROPE_ASSIGN_OR_RETURN(const ClipHeader header, read_clip_header(bytes));
  MEROPE_RETURN_IF_ERROR(check_size(header.width, header.height, width, height));
  if (header.n_frames < n_frames) {
    return invalid_argument("has " + std::to_string(header.n_frames) + " frames, " + std::to_string(n_frames) +
                            " are asked for");
  }

  constexpr int kIoBytes = 32 * 1024;
  MemoryFile file{bytes};
  auto* buffer = static_cast<std::uint8_t*>(av_malloc(kIoBytes));
  const IoPtr io(avio_alloc_context(buffer, kIoBytes, 0, &file, &MemoryFile::read, nullptr, &MemoryFile::seek));
  AVFormatContext* opened = avformat_alloc_context();
  if (io == nullptr || opened == nullptr) {
    avformat_free_context(opened);
    return Error{ErrorCode::kResourceExhausted, "out of memory for a demuxer"};
  }
  opened->pb = io.get();
  // The format is named: bytes that look like a playlist must not make libav open other files.
  if (const int code = avformat_open_input(&opened, nullptr, av_find_input_format("mov"), nullptr); code < 0) {
    return av_error(ErrorCode::kInvalidArgument, "avformat_open_input", code);  // it has freed the context
  }
  const DemuxerPtr demuxer(opened);
  const int stream = av_find_best_stream(demuxer.get(), AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  if (stream < 0) {
    return invalid_argument("has no video track that can be decoded");
  }
  const AVCodecParameters* parameters = demuxer->streams[stream]->codecpar;
  MEROPE_ASSIGN_OR_RETURN(const CodecContextPtr decoder, open_decoder(parameters->codec_id, parameters, width, height));

  RgbFrames frames{0, height, width, {}};
  frames.pixels.reserve(frames.frame_bytes() * static_cast<std::size_t>(n_frames));
  FrameCollector collector(frames, n_frames);
  const PacketPtr packet(av_packet_alloc());
  while (!collector.full()) {
    const int code = av_read_frame(demuxer.get(), packet.get());
    if (code == AVERROR_EOF) {
      MEROPE_RETURN_IF_ERROR(send(*decoder, nullptr));
      MEROPE_RETURN_IF_ERROR(collector.drain(*decoder));
      break;
    }
    if (code < 0) {
      return av_error(ErrorCode::kInvalidArgument, "av_read_frame", code);
    }
    if (packet->stream_index == stream) {
      MEROPE_RETURN_IF_ERROR(send(*decoder, packet.get()));
      MEROPE_RETURN_IF_ERROR(collector.drain(*decoder));
    }
    av_packet_unref(packet.get());
  }
  if (!collector.full()) {
    return invalid_argument("is damaged: only " + std::to_string(frames.n_frames) + " of " + std::to_string(n_frames) +
                            " frames can be decoded");
  }
  return frames;
}

Result<std::string> encode_png(const RgbFrames& frames, int index) {
  MEROPE_CHECK(index >= 0 && index < frames.n_frames, "encode_png: no such frame");
  MEROPE_ASSIGN_OR_RETURN(const std::unique_ptr<PngEncoder> encoder, PngEncoder::open(frames.width, frames.height));
  return encoder->encode(frames.frame(index));
}

}  // namespace merope::media
