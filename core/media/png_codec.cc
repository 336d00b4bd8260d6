#include "core/media/internal/png_codec.h"

#define ZLIB_CONST  // const input
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "core/media/internal/byte_reader.h"

namespace merope::media::internal {

Result<std::unique_ptr<PngEncoder>> PngEncoder::open(int width, int height) {
  quiet_libav();
  const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_PNG);
  if (codec == nullptr) {
    return internal_error("avcodec_find_encoder: this libavcodec has no PNG encoder");
  }
  std::unique_ptr<PngEncoder> encoder(new PngEncoder);
  encoder->codec_.reset(avcodec_alloc_context3(codec));
  encoder->frame_.reset(av_frame_alloc());
  encoder->packet_.reset(av_packet_alloc());
  if (!encoder->codec_ || !encoder->frame_ || !encoder->packet_) {
    return Error{ErrorCode::kResourceExhausted, "out of memory for a PNG encoder"};
  }
  AVCodecContext& context = *encoder->codec_;
  context.width = width;
  context.height = height;
  context.pix_fmt = AV_PIX_FMT_RGB24;
  context.time_base = {1, 25};  // asked for, not used
  context.thread_count = 1;
  context.flags |= AV_CODEC_FLAG_BITEXACT;
  Options options;
  options.set("pred", "paeth");  // half the bytes of no prediction on rendered pictures
  if (const int code = avcodec_open2(&context, codec, options.get()); code < 0) {
    return av_error(ErrorCode::kInternal, "avcodec_open2", code, "png");
  }
  AVFrame& frame = *encoder->frame_;
  frame.width = width;
  frame.height = height;
  frame.format = AV_PIX_FMT_RGB24;
  if (const int code = av_frame_get_buffer(&frame, 0); code < 0) {
    return av_error(ErrorCode::kInternal, "av_frame_get_buffer", code);
  }
  return encoder;
}

Result<std::string> PngEncoder::encode(std::span<const std::uint8_t> rgb) {
  AVFrame& frame = *frame_;
  if (const int code = av_frame_make_writable(&frame); code < 0) {
    return av_error(ErrorCode::kInternal, "av_frame_make_writable", code);
  }
  const std::size_t row = static_cast<std::size_t>(frame.width) * 3;
  for (int y = 0; y < frame.height; ++y) {
    std::memcpy(frame.data[0] + static_cast<std::ptrdiff_t>(y) * frame.linesize[0],
                rgb.data() + static_cast<std::size_t>(y) * row,
                row);
  }
  if (const int code = avcodec_send_frame(codec_.get(), &frame); code < 0) {
    return av_error(ErrorCode::kInternal, "avcodec_send_frame", code, "png");
  }
  if (const int code = avcodec_receive_packet(codec_.get(), packet_.get()); code < 0) {
    return av_error(ErrorCode::kInternal, "avcodec_receive_packet", code, "png");
  }
  std::string bytes(reinterpret_cast<const char*>(packet_->data), static_cast<std::size_t>(packet_->size));
  av_packet_unref(packet_.get());
  return bytes;
}

namespace {

std::uint64_t rows_bytes(std::uint64_t width, std::uint64_t height, std::uint64_t bits_per_pixel) {
  return width == 0 ? 0 : height * (1 + (width * bits_per_pixel + 7) / 8);  // a filter byte before each row
}

// How many bytes the rows of this picture are before compression.
std::uint64_t inflated_bytes(std::string_view ihdr) {
  const std::uint64_t width = be32(ihdr, 0);
  const std::uint64_t height = be32(ihdr, 4);
  static constexpr std::array<std::uint64_t, 7> kChannels = {1, 0, 3, 1, 2, 0, 4};  // by colour type
  const std::uint64_t bits = byte_at(ihdr, 8) * kChannels.at(byte_at(ihdr, 9));
  if (byte_at(ihdr, 12) == 0) {
    return rows_bytes(width, height, bits);
  }
  struct Pass {
    std::uint64_t x0, y0, dx, dy;
  };
  static constexpr Pass kAdam7[] = {
      {0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  std::uint64_t sum = 0;
  for (const Pass& pass : kAdam7) {
    sum += rows_bytes((width + pass.dx - 1 - pass.x0) / pass.dx, (height + pass.dy - 1 - pass.y0) / pass.dy, bits);
  }
  return sum;
}

struct Inflater {
  z_stream stream{};
  bool ready = inflateInit(&stream) == Z_OK;
  Inflater() = default;
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (ready) {
      inflateEnd(&stream);
    }
  }
};

}  // namespace

Status check_png_rows(std::string_view bytes) {
  Inflater inflater;
  if (!inflater.ready) {
    return Error{ErrorCode::kResourceExhausted, "out of memory for an inflater"};
  }
  std::array<Bytef, 64 * 1024> out;
  std::uint64_t wanted = 0;
  std::uint64_t found = 0;
  int state = Z_OK;
  std::size_t at = 8;
  while (at + 12 <= bytes.size()) {
    const std::size_t length = be32(bytes, at);
    const std::string_view type = bytes.substr(at + 4, 4);
    std::string_view data = bytes.substr(at + 8, length);
    at += length + 12;
    if (type == "IHDR") {
      wanted = inflated_bytes(data);
    }
    if (type != "IDAT") {
      continue;
    }
    while (!data.empty() && state == Z_OK && found < wanted) {
      const std::size_t piece = std::min<std::size_t>(data.size(), std::numeric_limits<uInt>::max());
      inflater.stream.next_in = reinterpret_cast<const Bytef*>(data.data());
      inflater.stream.avail_in = static_cast<uInt>(piece);
      inflater.stream.next_out = out.data();
      inflater.stream.avail_out = static_cast<uInt>(out.size());
      state = inflate(&inflater.stream, Z_NO_FLUSH);
      found += out.size() - inflater.stream.avail_out;
      data.remove_prefix(piece - inflater.stream.avail_in);
      if (state == Z_BUF_ERROR) {
        state = Z_OK;  // wants more input: the next chunk
        break;
      }
    }
  }
  // What the last chunk left inside the inflater.
  while (state == Z_OK && found < wanted) {
    inflater.stream.avail_in = 0;
    inflater.stream.next_out = out.data();
    inflater.stream.avail_out = static_cast<uInt>(out.size());
    state = inflate(&inflater.stream, Z_SYNC_FLUSH);
    const std::size_t got = out.size() - inflater.stream.avail_out;
    found += got;
    if (got == 0) {
      break;
    }
  }
  if (found < wanted) {
    return invalid_argument("PNG is damaged: its pixels end after " + std::to_string(found) + " of " +
                            std::to_string(wanted) + " bytes");
  }
  return {};
}

}  // namespace merope::media::internal
