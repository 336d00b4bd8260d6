#include "core/media/internal/mp4_writer.h"

#include <new>

#include "core/media/codec_choice.h"

namespace merope::media::internal {

Result<std::unique_ptr<ClipWriter>> Mp4Writer::open(const ClipSettings& settings, Sink sink) {
  quiet_libav();
  std::unique_ptr<Mp4Writer> writer(new Mp4Writer(settings, std::move(sink)));
  MEROPE_RETURN_IF_ERROR(writer->open_encoder());
  MEROPE_RETURN_IF_ERROR(writer->open_muxer());
  MEROPE_RETURN_IF_ERROR(writer->hand_on(0));
  return std::unique_ptr<ClipWriter>(std::move(writer));
}

Status Mp4Writer::open_encoder() {
  const CodecChoice* choice = find_codec(settings_.format);
  MEROPE_CHECK(choice != nullptr, "a format without a codec");
  const AVCodec* codec = avcodec_find_encoder_by_name(choice->encoder);
  if (codec == nullptr) {
    return internal_error("avcodec_find_encoder_by_name: this libavcodec lacks " + std::string(choice->encoder));
  }
  encoder_.reset(avcodec_alloc_context3(codec));
  frame_.reset(av_frame_alloc());
  packet_.reset(av_packet_alloc());
  if (!encoder_ || !frame_ || !packet_) {
    return Error{ErrorCode::kResourceExhausted, "out of memory for an encoder"};
  }
  AVCodecContext& context = *encoder_;
  context.width = settings_.width;
  context.height = settings_.height;
  context.pix_fmt = choice->pixel_format;
  context.time_base = {1, settings_.fps};
  context.framerate = {settings_.fps, 1};
  context.gop_size = settings_.frames_per_fragment;
  context.max_b_frames = 0;
  context.thread_count = settings_.threads;  // never 0: libav would ask the machine, and other numbers give other bytes
  context.flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_BITEXACT | AV_CODEC_FLAG_CLOSED_GOP;
  context.colorspace = choice->matrix;
  context.color_range = choice->range;
  context.color_primaries = AVCOL_PRI_BT709;
  context.color_trc = choice->transfer;
  Options options;
  for (const auto& [key, value] : choice->options) {
    options.set(key, value);
  }
  if (const int code = avcodec_open2(&context, codec, options.get()); code < 0) {
    return av_error(ErrorCode::kInternal, "avcodec_open2", code, choice->encoder);
  }
  if (!options.left_over().empty()) {
    return internal_error("avcodec_open2: " + std::string(choice->encoder) + " does not know option " +
                          std::string(options.left_over()));
  }

  AVFrame& frame = *frame_;
  frame.width = settings_.width;
  frame.height = settings_.height;
  frame.format = choice->pixel_format;
  frame.colorspace = choice->matrix;
  frame.color_range = choice->range;
  frame.color_primaries = AVCOL_PRI_BT709;
  frame.color_trc = choice->transfer;
  if (const int code = av_frame_get_buffer(&frame, 0); code < 0) {
    return av_error(ErrorCode::kInternal, "av_frame_get_buffer", code);
  }
  return {};
}

Status Mp4Writer::open_muxer() {
  AVFormatContext* context = nullptr;
  if (const int code = avformat_alloc_output_context2(&context, nullptr, "mp4", nullptr); code < 0) {
    return av_error(ErrorCode::kInternal, "avformat_alloc_output_context2", code, "mp4");
  }
  muxer_.reset(context);
  constexpr int kIoBytes = 64 * 1024;
  auto* buffer = static_cast<std::uint8_t*>(av_malloc(kIoBytes));
  io_.reset(avio_alloc_context(buffer, kIoBytes, 1, this, nullptr, &Mp4Writer::collect, nullptr));
  stream_ = avformat_new_stream(muxer_.get(), nullptr);
  if (io_ == nullptr || stream_ == nullptr) {
    return Error{ErrorCode::kResourceExhausted, "out of memory for a muxer"};
  }
  muxer_->pb = io_.get();
  muxer_->flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_BITEXACT;
  if (const int code = avcodec_parameters_from_context(stream_->codecpar, encoder_.get()); code < 0) {
    return av_error(ErrorCode::kInternal, "avcodec_parameters_from_context", code);
  }
  stream_->time_base = encoder_->time_base;  // a wish: the muxer picks a multiple, so times stay exact
  stream_->avg_frame_rate = {settings_.fps, 1};
  Options options;
  options.set("movflags", "frag_keyframe+empty_moov+default_base_moof");
  if (const int code = avformat_write_header(muxer_.get(), options.get()); code < 0) {
    return av_error(ErrorCode::kInternal, "avformat_write_header", code, "mp4");
  }
  avio_flush(io_.get());
  return {};
}

int Mp4Writer::collect(void* opaque, std::uint8_t* bytes, int size) {
  try {
    static_cast<Mp4Writer*>(opaque)->collected_.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  } catch (const std::bad_alloc&) {
    return AVERROR(ENOMEM);  // no exception may pass through libav
  }
  return size;
}

Status Mp4Writer::write(const RgbFrames& frames) {
  MEROPE_RETURN_IF_ERROR(check_frame_size(settings_, frames));
  for (int i = 0; i < frames.n_frames; ++i) {
    MEROPE_RETURN_IF_ERROR(encode(frames.frame(i)));
    if (n_encoded_ % settings_.frames_per_fragment == 0) {
      MEROPE_RETURN_IF_ERROR(end_fragment());
    }
  }
  return {};
}

Status Mp4Writer::encode(std::span<const std::uint8_t> rgb) {
  AVFrame& frame = *frame_;
  if (const int code = av_frame_make_writable(&frame); code < 0) {
    return av_error(ErrorCode::kInternal, "av_frame_make_writable", code);
  }
  MEROPE_RETURN_IF_ERROR(converter_.from_rgb(rgb, frame));
  frame.pts = n_encoded_;
  frame.pict_type = n_encoded_ % settings_.frames_per_fragment == 0 ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE;
  if (const int code = avcodec_send_frame(encoder_.get(), &frame); code < 0) {
    return av_error(ErrorCode::kInternal, "avcodec_send_frame", code, encoder_->codec->name);
  }
  ++n_encoded_;
  return take_packets();
}

Status Mp4Writer::take_packets() {
  while (true) {
    const int code = avcodec_receive_packet(encoder_.get(), packet_.get());
    if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) {
      return {};
    }
    if (code < 0) {
      return av_error(ErrorCode::kInternal, "avcodec_receive_packet", code, encoder_->codec->name);
    }
    packet_->stream_index = stream_->index;
    packet_->duration = 1;  // else the last frame of a fragment is shown too briefly
    av_packet_rescale_ts(packet_.get(), encoder_->time_base, stream_->time_base);
    ++n_muxed_;
    if (const int written = av_write_frame(muxer_.get(), packet_.get()); written < 0) {
      return av_error(ErrorCode::kInternal, "av_write_frame", written, "mp4");
    }
    av_packet_unref(packet_.get());
  }
}

Status Mp4Writer::end_fragment() {
  if (n_muxed_ != n_encoded_) {
    return internal_error("the encoder holds back " + std::to_string(n_encoded_ - n_muxed_) +
                          " frames at the end of a fragment");
  }
  // Without a packet: the fragment is written now, not when the next key frame comes.
  if (const int code = av_write_frame(muxer_.get(), nullptr); code < 0) {
    return av_error(ErrorCode::kInternal, "av_write_frame", code, "mp4");
  }
  return hand_on(n_encoded_ - n_handed_on_);
}

Status Mp4Writer::hand_on(int n_frames) {
  avio_flush(io_.get());
  if (io_->error < 0) {
    return av_error(ErrorCode::kInternal, "avio_flush", io_->error, "mp4");
  }
  if (collected_.empty()) {
    return {};
  }
  ClipFragment fragment{std::move(collected_), n_handed_on_, n_frames};
  collected_.clear();
  n_handed_on_ += n_frames;
  return sink_(std::move(fragment));
}

Status Mp4Writer::finish() {
  if (const int code = avcodec_send_frame(encoder_.get(), nullptr); code < 0) {
    return av_error(ErrorCode::kInternal, "avcodec_send_frame", code, encoder_->codec->name);
  }
  MEROPE_RETURN_IF_ERROR(take_packets());
  if (n_muxed_ != n_encoded_) {
    return internal_error("the encoder has lost " + std::to_string(n_encoded_ - n_muxed_) + " frames");
  }
  if (const int code = av_write_trailer(muxer_.get()); code < 0) {
    return av_error(ErrorCode::kInternal, "av_write_trailer", code, "mp4");
  }
  return hand_on(n_encoded_ - n_handed_on_);
}

}  // namespace merope::media::internal
