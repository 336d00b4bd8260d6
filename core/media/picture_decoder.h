// PNG, JPEG and MP4 bytes to frames.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/media/rgb_frames.h"

namespace merope::media {

// One PNG or JPEG file to one frame. The header is read first: kInvalidArgument when it does not say width x height, before
// anything is allocated; also when the file is broken. Alpha is dropped; grey becomes RGB.
Result<RgbFrames> decode_picture(std::string_view bytes, int width, int height);

// The first n_frames frames of an MP4 clip. kInvalidArgument when it has fewer, another size, or can not be decoded.
Result<RgbFrames> decode_clip(std::string_view bytes, int width, int height, int n_frames);

// One frame as a PNG file.
Result<std::string> encode_png(const RgbFrames& frames, int index);

}  // namespace merope::media
