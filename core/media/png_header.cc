// PNG (ISO/IEC 15948): signature, then chunks of length, type, data and CRC.
#include <zlib.h>

#include <limits>
#include <string>

#include "core/media/internal/byte_reader.h"
#include "core/media/internal/formats.h"

namespace merope::media::internal {
namespace {

constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);
constexpr std::size_t kChunkOverhead = 12;  // length, type, CRC

// A chunk type for a message: four letters, or their numbers when they are none.
std::string chunk_name(std::string_view type) {
  for (const char c : type) {
    if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))) {
      return "of an unreadable type";
    }
  }
  return std::string(type);
}

bool valid_depth(std::uint8_t depth, std::uint8_t colour_type) {
  switch (colour_type) {
    case 0: return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case 3: return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case 2:
    case 4:
    case 6: return depth == 8 || depth == 16;
    default: return false;
  }
}

Result<PictureHeader> parse_ihdr(std::string_view data) {
  if (data.size() != 13) {
    return invalid_argument("PNG has a header chunk of " + std::to_string(data.size()) + " bytes instead of 13");
  }
  const std::uint32_t width = be32(data, 0);
  const std::uint32_t height = be32(data, 4);
  constexpr auto kMax = static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max());
  if (width == 0 || height == 0 || width > kMax || height > kMax) {
    return invalid_argument("PNG says it is " + std::to_string(width) + "x" + std::to_string(height) + " pixels large");
  }
  if (!valid_depth(byte_at(data, 8), byte_at(data, 9)) || byte_at(data, 10) != 0 || byte_at(data, 11) != 0 ||
      byte_at(data, 12) > 1) {
    return invalid_argument("PNG has a colour type, bit depth or coding that the format does not know");
  }
  return PictureHeader{FileFormat::kPng, static_cast<int>(width), static_cast<int>(height)};
}

}  // namespace

bool looks_like_png(std::string_view bytes) {
  return bytes.starts_with(kSignature.substr(0, 4));
}

Result<PictureHeader> read_png_header(std::string_view bytes) {
  if (!bytes.starts_with(kSignature)) {
    return invalid_argument(bytes.size() < kSignature.size() ? "PNG is cut off in its signature"
                                                             : "PNG has a damaged signature");
  }
  PictureHeader header;
  bool has_header = false;
  bool has_pixels = false;
  std::size_t at = kSignature.size();
  while (true) {
    if (at == bytes.size()) {
      return invalid_argument("PNG is cut off: its end chunk is missing");
    }
    if (!holds(bytes, at, 8)) {
      return invalid_argument("PNG is cut off in the head of a chunk");
    }
    const std::uint64_t length = be32(bytes, at);
    const std::string_view type = bytes.substr(at + 4, 4);
    if (!holds(bytes, at, length + kChunkOverhead)) {
      return invalid_argument("PNG is cut off in chunk " + chunk_name(type));
    }
    const std::string_view data = bytes.substr(at + 8, length);
    const std::string_view checked = bytes.substr(at + 4, length + 4);
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(checked.data()), checked.size());
    if (static_cast<std::uint32_t>(crc) != be32(bytes, at + 8 + length)) {
      return invalid_argument("PNG is damaged: the checksum of chunk " + chunk_name(type) + " does not hold");
    }
    at += length + kChunkOverhead;

    if ((type == "IHDR") != !has_header) {
      return invalid_argument(has_header ? "PNG has two header chunks" : "PNG does not begin with its header chunk");
    }
    if (type == "IHDR") {
      MEROPE_ASSIGN_OR_RETURN(header, parse_ihdr(data));
      has_header = true;
    } else if (type == "IDAT") {
      has_pixels = true;
    } else if (type == "IEND") {
      break;
    }
  }
  if (!has_pixels) {
    return invalid_argument("PNG has no pixels: no chunk IDAT");
  }
  if (at != bytes.size()) {
    return invalid_argument("PNG goes on after its end chunk for " + std::to_string(bytes.size() - at) + " bytes");
  }
  return header;
}

}  // namespace merope::media::internal
