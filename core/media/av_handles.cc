#include "core/media/internal/av_handles.h"

#include <array>
#include <mutex>
#include <string>

namespace merope::media::internal {

Error av_error(ErrorCode code, std::string_view call, int av_code, std::string_view detail) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  av_strerror(av_code, text.data(), text.size());
  std::string message = std::string(call) + ": " + text.data();
  if (!detail.empty()) {
    message += " (" + std::string(detail) + ")";
  }
  return {av_code == AVERROR(ENOMEM) ? ErrorCode::kResourceExhausted : code, std::move(message)};
}

void quiet_libav() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_level(AV_LOG_QUIET); });
}

}  // namespace merope::media::internal
