// JPEG (ITU-T T.81): segments behind two-byte markers, entropy-coded data behind each start of scan.
#include <string>

#include "core/media/internal/byte_reader.h"
#include "core/media/internal/formats.h"

namespace merope::media::internal {
namespace {

constexpr std::uint8_t kStartOfImage = 0xD8;
constexpr std::uint8_t kEndOfImage = 0xD9;
constexpr std::uint8_t kStartOfScan = 0xDA;

// Start-of-frame markers C0..CF; C4, C8 and CC mean something else.
bool is_frame_header(std::uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

bool is_restart(std::uint8_t marker) {
  return marker >= 0xD0 && marker <= 0xD7;
}

Result<PictureHeader> parse_frame_header(std::uint8_t marker, std::string_view data) {
  if (data.size() < 6) {
    return invalid_argument("JPEG has a frame header that is too short");
  }
  if (marker > 0xC2) {
    return invalid_argument("JPEG is coded losslessly, hierarchically or arithmetically, which is not supported");
  }
  if (byte_at(data, 0) != 8) {
    return invalid_argument("JPEG has " + std::to_string(byte_at(data, 0)) + " bits per sample; 8 are supported");
  }
  const int height = static_cast<int>(be16(data, 1));
  const int width = static_cast<int>(be16(data, 3));
  if (width == 0 || height == 0) {
    return invalid_argument("JPEG says it is " + std::to_string(width) + "x" + std::to_string(height) + " pixels large");
  }
  const std::uint8_t components = byte_at(data, 5);
  if ((components != 1 && components != 3) || data.size() != 6 + std::size_t{components} * 3) {
    return invalid_argument("JPEG has " + std::to_string(components) + " colour components; 1 and 3 are supported");
  }
  return PictureHeader{FileFormat::kJpeg, width, height};
}

// The offset of the marker that ends the entropy-coded data from `at` on; npos when the file ends first.
std::size_t skip_scan(std::string_view bytes, std::size_t at) {
  while (true) {
    at = bytes.find('\xFF', at);
    if (at == std::string_view::npos || !holds(bytes, at, 2)) {
      return std::string_view::npos;
    }
    const std::uint8_t next = byte_at(bytes, at + 1);
    if (next == 0xFF) {
      ++at;  // fill byte
    } else if (next == 0 || is_restart(next)) {
      at += 2;
    } else {
      return at;
    }
  }
}

}  // namespace

bool looks_like_jpeg(std::string_view bytes) {
  return bytes.starts_with("\xFF\xD8\xFF");
}

Result<PictureHeader> read_jpeg_header(std::string_view bytes) {
  PictureHeader header;
  bool has_header = false;
  bool has_scan = false;
  std::size_t at = 2;
  while (true) {
    if (!holds(bytes, at, 2)) {
      return invalid_argument(has_scan ? "JPEG is cut off: its end marker is missing" : "JPEG is cut off before its pixels");
    }
    if (byte_at(bytes, at) != 0xFF) {
      return invalid_argument("JPEG is damaged: no marker at byte " + std::to_string(at));
    }
    const std::uint8_t marker = byte_at(bytes, at + 1);
    if (marker == 0xFF) {
      ++at;
      continue;
    }
    if (marker == kEndOfImage) {
      break;
    }
    if (marker == 0 || marker == 1 || is_restart(marker) || marker == kStartOfImage) {
      return invalid_argument("JPEG is damaged: a marker is out of place at byte " + std::to_string(at));
    }
    if (!holds(bytes, at, 4)) {
      return invalid_argument("JPEG is cut off in the head of a segment");
    }
    const std::size_t length = be16(bytes, at + 2);
    if (length < 2) {
      return invalid_argument("JPEG is damaged: a segment has no length at byte " + std::to_string(at));
    }
    if (!holds(bytes, at + 2, length)) {
      return invalid_argument("JPEG is cut off in a segment at byte " + std::to_string(at));
    }
    if (is_frame_header(marker)) {
      if (has_header) {
        return invalid_argument("JPEG has two frame headers");
      }
      MEROPE_ASSIGN_OR_RETURN(header, parse_frame_header(marker, bytes.substr(at + 4, length - 2)));
      has_header = true;
    }
    at += 2 + length;
    if (marker == kStartOfScan) {
      if (!has_header) {
        return invalid_argument("JPEG has pixels before its frame header");
      }
      has_scan = true;
      at = skip_scan(bytes, at);
      if (at == std::string_view::npos) {
        return invalid_argument("JPEG is cut off: its end marker is missing");
      }
    }
  }
  if (!has_scan) {
    return invalid_argument("JPEG has no pixels");
  }
  return header;  // cameras append data of their own after the end marker: it is not looked at
}

}  // namespace merope::media::internal
