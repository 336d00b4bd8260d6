// Owners of libav's objects; nothing else in this room calls a free function. And its return codes as Errors.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <string_view>

#include "core/base/result.h"

namespace merope::media::internal {

struct AvFree {
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(SwsContext* context) const { sws_freeContext(context); }
  void operator()(AVIOContext* io) const {
    av_freep(&io->buffer);
    avio_context_free(&io);
  }
};

using CodecContextPtr = std::unique_ptr<AVCodecContext, AvFree>;
using FramePtr = std::unique_ptr<AVFrame, AvFree>;
using PacketPtr = std::unique_ptr<AVPacket, AvFree>;
using SwsPtr = std::unique_ptr<SwsContext, AvFree>;
using IoPtr = std::unique_ptr<AVIOContext, AvFree>;

// A muxer's context; its `pb` belongs to an IoPtr that is declared before it.
struct MuxerFree {
  void operator()(AVFormatContext* context) const { avformat_free_context(context); }
};
using MuxerPtr = std::unique_ptr<AVFormatContext, MuxerFree>;

struct DemuxerFree {
  void operator()(AVFormatContext* context) const { avformat_close_input(&context); }
};
using DemuxerPtr = std::unique_ptr<AVFormatContext, DemuxerFree>;

// Options for an open call: keys that it did not take are left inside.
class Options {
 public:
  Options() = default;
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  ~Options() { av_dict_free(&dictionary_); }
  void set(const char* key, const char* value) { av_dict_set(&dictionary_, key, value, 0); }
  AVDictionary** get() { return &dictionary_; }
  // The first key that was not taken; empty when all were.
  std::string_view left_over() const {
    const AVDictionaryEntry* entry = av_dict_get(dictionary_, "", nullptr, AV_DICT_IGNORE_SUFFIX);
    return entry == nullptr ? std::string_view() : entry->key;
  }

 private:
  AVDictionary* dictionary_ = nullptr;
};

// "avcodec_open2: Invalid argument (libx264)". A failed allocation is kResourceExhausted whatever `code` says.
Error av_error(ErrorCode code, std::string_view call, int av_code, std::string_view detail = {});

// libav writes what it thinks to stderr, where our log is. Errors come back as values instead, so it is told to be quiet.
void quiet_libav();

}  // namespace merope::media::internal
