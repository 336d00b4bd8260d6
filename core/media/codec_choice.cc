#include "core/media/codec_choice.h"

namespace merope::media {
namespace {

using Option = std::pair<const char*, const char*>;

// zerolatency: each frame comes out of the encoder before the next one goes in, so a group of pictures is complete when its
// last frame has been written. scenecut would put key frames where no fragment begins.
constexpr Option kViewing[] = {
    {"preset", "veryfast"}, {"tune", "zerolatency"}, {"crf", "18"}, {"forced-idr", "1"}, {"x264-params", "scenecut=0"}};
constexpr Option kExact[] = {
    {"preset", "ultrafast"}, {"tune", "zerolatency"}, {"qp", "0"}, {"forced-idr", "1"}, {"x264-params", "scenecut=0"}};

constexpr CodecChoice kCodecs[] = {
    {ClipFormat::kH264, "libx264", AV_PIX_FMT_YUV420P, true, AVCOL_SPC_BT709, AVCOL_RANGE_MPEG, AVCOL_TRC_BT709, kViewing},
    {ClipFormat::kRgbExact,
     "libx264rgb",
     AV_PIX_FMT_RGB24,
     false,
     AVCOL_SPC_RGB,
     AVCOL_RANGE_JPEG,
     AVCOL_TRC_IEC61966_2_1,
     kExact},
};

}  // namespace

const CodecChoice* find_codec(ClipFormat format) {
  for (const CodecChoice& choice : kCodecs) {
    if (choice.format == format) {
      return &choice;
    }
  }
  return nullptr;
}

}  // namespace merope::media
