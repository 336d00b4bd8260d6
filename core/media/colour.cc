#include "core/media/internal/colour.h"

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace merope::media::internal {
namespace {

constexpr int kFlags = SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_BITEXACT;
constexpr int kOne = 1 << 16;  // swscale's contrast and saturation of 1

bool is_rgb(AVPixelFormat format) {
  const AVPixFmtDescriptor* descriptor = av_pix_fmt_desc_get(format);
  return descriptor != nullptr && (descriptor->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) != 0;
}

// swscale's number of the matrix.
int matrix_of(const AVFrame& frame) {
  switch (frame.colorspace) {
    case AVCOL_SPC_BT709: return SWS_CS_ITU709;
    case AVCOL_SPC_FCC: return SWS_CS_FCC;
    case AVCOL_SPC_SMPTE240M: return SWS_CS_SMPTE240M;
    case AVCOL_SPC_BT2020_NCL: return SWS_CS_BT2020;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M: return SWS_CS_ITU601;
    default: return frame.height >= 720 ? SWS_CS_ITU709 : SWS_CS_ITU601;
  }
}

// The formats named yuvj* are those without j in full range; swscale wants the range said apart.
AVPixelFormat without_j(AVPixelFormat format, bool& full_range) {
  switch (format) {
    case AV_PIX_FMT_YUVJ420P: full_range = true; return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P: full_range = true; return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ444P: full_range = true; return AV_PIX_FMT_YUV444P;
    case AV_PIX_FMT_YUVJ440P: full_range = true; return AV_PIX_FMT_YUV440P;
    case AV_PIX_FMT_YUVJ411P: full_range = true; return AV_PIX_FMT_YUV411P;
    default: return format;
  }
}

}  // namespace

Status ColourConverter::from_rgb(std::span<const std::uint8_t> rgb, AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  context_.reset(sws_getCachedContext(context_.release(),
                                      frame.width,
                                      frame.height,
                                      AV_PIX_FMT_RGB24,
                                      frame.width,
                                      frame.height,
                                      format,
                                      kFlags,
                                      nullptr,
                                      nullptr,
                                      nullptr));
  if (context_ == nullptr) {
    return internal_error("sws_getCachedContext: no way from rgb24 to the encoder's format");
  }
  if (!is_rgb(format)) {
    const int* matrix = sws_getCoefficients(matrix_of(frame));
    const int full = frame.color_range == AVCOL_RANGE_JPEG ? 1 : 0;
    if (sws_setColorspaceDetails(context_.get(), matrix, 1, matrix, full, 0, kOne, kOne) < 0) {
      return internal_error("sws_setColorspaceDetails: the matrix is not supported");
    }
  }
  const std::uint8_t* const planes[] = {rgb.data()};
  const int strides[] = {frame.width * 3};
  const int rows = sws_scale(context_.get(), planes, strides, 0, frame.height, frame.data, frame.linesize);
  if (rows != frame.height) {
    return av_error(ErrorCode::kInternal, "sws_scale", rows < 0 ? rows : AVERROR_EXTERNAL);
  }
  return {};
}

Status ColourConverter::to_rgb(const AVFrame& frame, std::span<std::uint8_t> rgb) {
  bool full_range = frame.color_range == AVCOL_RANGE_JPEG;
  const AVPixelFormat format = without_j(static_cast<AVPixelFormat>(frame.format), full_range);
  context_.reset(sws_getCachedContext(context_.release(),
                                      frame.width,
                                      frame.height,
                                      format,
                                      frame.width,
                                      frame.height,
                                      AV_PIX_FMT_RGB24,
                                      kFlags,
                                      nullptr,
                                      nullptr,
                                      nullptr));
  if (context_ == nullptr) {
    return internal_error("sws_getCachedContext: no way from the picture's pixel format to RGB");
  }
  if (!is_rgb(format)) {
    const AVPixFmtDescriptor* descriptor = av_pix_fmt_desc_get(format);
    const bool grey = descriptor->nb_components <= 2;  // PNG's grey has no limited range
    const int* matrix = sws_getCoefficients(matrix_of(frame));
    if (sws_setColorspaceDetails(context_.get(), matrix, full_range || grey ? 1 : 0, matrix, 1, 0, kOne, kOne) < 0) {
      return internal_error("sws_setColorspaceDetails: the matrix is not supported");
    }
  }
  std::uint8_t* const planes[] = {rgb.data()};
  const int strides[] = {frame.width * 3};
  const int rows = sws_scale(context_.get(), frame.data, frame.linesize, 0, frame.height, planes, strides);
  if (rows != frame.height) {
    return av_error(ErrorCode::kInternal, "sws_scale", rows < 0 ? rows : AVERROR_EXTERNAL);
  }
  return {};
}

}  // namespace merope::media::internal
