// One parser per picture format; read_picture_header picks by signature.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/media/picture_header.h"

namespace merope::media::internal {

bool looks_like_png(std::string_view bytes);
bool looks_like_jpeg(std::string_view bytes);
bool looks_like_mp4(std::string_view bytes);

Result<PictureHeader> read_png_header(std::string_view bytes);
Result<PictureHeader> read_jpeg_header(std::string_view bytes);

}  // namespace merope::media::internal
