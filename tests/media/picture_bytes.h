// Picture and clip files made byte by byte, so that the parsers are not tested with files of their own library only.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace merope::media::testing {

inline std::string be16_bytes(std::uint32_t v) {
  return {static_cast<char>(v >> 8U & 255U), static_cast<char>(v & 255U)};
}
inline std::string be32_bytes(std::uint32_t v) {
  return be16_bytes(v >> 16U) + be16_bytes(v & 0xFFFFU);
}

inline std::string png_chunk(std::string_view type, std::string_view data) {
  const std::string checked = std::string(type) + std::string(data);
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
  return be32_bytes(static_cast<std::uint32_t>(data.size())) + checked + be32_bytes(static_cast<std::uint32_t>(crc));
}

inline std::string png_ihdr(std::uint32_t width, std::uint32_t height, char colour_type = 2) {
  return png_chunk("IHDR", be32_bytes(width) + be32_bytes(height) + std::string{8, colour_type, 0, 0, 0});
}

inline constexpr std::string_view kPngSignature("\x89PNG\r\n\x1a\n", 8);

// A whole black RGB picture: small as a file, however large it is decoded.
inline std::string black_png(std::uint32_t width, std::uint32_t height) {
  const std::size_t n = (std::size_t{width} * 3 + 1) * height;
  const std::string raw(n, '\0');
  std::string packed(compressBound(static_cast<uLong>(n)), '\0');
  auto size = static_cast<uLongf>(packed.size());
  compress2(
      reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(raw.data()), static_cast<uLong>(n), 9);
  packed.resize(size);
  return std::string(kPngSignature) + png_ihdr(width, height) + png_chunk("IDAT", packed) + png_chunk("IEND", "");
}

// The segments of a baseline JPEG; its entropy-coded data means nothing.
inline std::string jpeg_segment(char marker, std::string_view data) {
  return std::string{'\xFF', marker} + be16_bytes(static_cast<std::uint32_t>(data.size() + 2)) + std::string(data);
}
inline std::string jpeg_frame_header(std::uint32_t width, std::uint32_t height, char marker = '\xC0') {
  return jpeg_segment(
      marker,
      std::string{8} + be16_bytes(height) + be16_bytes(width) + std::string("\x03\x01\x11\x00\x02\x11\x00\x03\x11\x00", 10));
}
inline std::string jpeg_file(std::uint32_t width, std::uint32_t height) {
  return "\xFF\xD8" + jpeg_segment('\xE0', std::string("JFIF\0\1\1\0\0\1\0\1\0\0", 14)) + jpeg_frame_header(width, height) +
         jpeg_segment('\xDA', std::string("\x03\x01\x00\x02\x00\x03\x00\x00\x3F\x00", 10)) +
         std::string("\x12\xFF\x00\x34\xFF\xD0\x56", 7) + "\xFF\xD9";
}

inline std::string mp4_box(std::string_view type, std::string_view content) {
  return be32_bytes(static_cast<std::uint32_t>(content.size() + 8)) + std::string(type) + std::string(content);
}
inline std::string mp4_ftyp() {
  return mp4_box("ftyp", std::string("isom\0\0\2\0isom", 12));
}
inline std::string mp4_moov(std::uint32_t width,
                            std::uint32_t height,
                            std::uint32_t n_samples,
                            std::string_view handler = "vide",
                            std::string_view codec = "avc1") {
  const std::string zeros(64, '\0');
  const std::string entry =
      mp4_box(codec, zeros.substr(0, 24) + be16_bytes(width) + be16_bytes(height) + zeros.substr(0, 50));
  const std::string stbl = mp4_box("stsd", be32_bytes(0) + be32_bytes(1) + entry) +
                           mp4_box("stsz", be32_bytes(0) + be32_bytes(100) + be32_bytes(n_samples));
  const std::string mdia = mp4_box("hdlr", zeros.substr(0, 8) + std::string(handler) + zeros.substr(0, 13)) +
                           mp4_box("minf", mp4_box("stbl", stbl));
  return mp4_box("moov",
                 mp4_box("trak", mp4_box("tkhd", zeros.substr(0, 12) + be32_bytes(7) + zeros) + mp4_box("mdia", mdia)));
}
inline std::string mp4_moof(std::uint32_t track_id, std::uint32_t n_samples) {
  return mp4_box("moof",
                 mp4_box("traf",
                         mp4_box("tfhd", be32_bytes(0) + be32_bytes(track_id)) +
                             mp4_box("trun", be32_bytes(0) + be32_bytes(n_samples))));
}

}  // namespace merope::media::testing
