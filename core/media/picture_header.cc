#include "core/media/picture_header.h"

#include "core/media/internal/formats.h"

namespace merope::media {

std::string_view to_string(FileFormat format) {
  switch (format) {
    case FileFormat::kPng: return "png";
    case FileFormat::kJpeg: return "jpeg";
    case FileFormat::kMp4: return "mp4";
  }
  return "unknown";
}

Result<PictureHeader> read_picture_header(std::string_view bytes) {
  if (bytes.empty()) {
    return invalid_argument("is empty");
  }
  if (internal::looks_like_png(bytes)) {
    return internal::read_png_header(bytes);
  }
  if (internal::looks_like_jpeg(bytes)) {
    return internal::read_jpeg_header(bytes);
  }
  if (internal::looks_like_mp4(bytes)) {
    return invalid_argument("is neither PNG nor JPEG but an MP4 clip");
  }
  return invalid_argument("is neither PNG nor JPEG");
}

}  // namespace merope::media
