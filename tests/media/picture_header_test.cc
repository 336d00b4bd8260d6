#include "core/media/picture_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/media/picture_bytes.h"

namespace merope::media {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of picture_bytes.h
using ::testing::HasSubstr;

std::string refusal(std::string_view bytes) {
  const auto header = read_picture_header(bytes);
  EXPECT_FALSE(header.has_value());
  if (header) {
    return "";
  }
  EXPECT_EQ(header.error().code, ErrorCode::kInvalidArgument);
  return header.error().message;
}

std::string clip_refusal(std::string_view bytes) {
  const auto header = read_clip_header(bytes);
  EXPECT_FALSE(header.has_value());
  if (header) {
    return "";
  }
  EXPECT_EQ(header.error().code, ErrorCode::kInvalidArgument);
  return header.error().message;
}

TEST(PictureHeader, ReadsThePngSize) {
  const auto header = read_picture_header(black_png(64, 48));
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->format, FileFormat::kPng);
  EXPECT_EQ(header->width, 64);
  EXPECT_EQ(header->height, 48);
}

TEST(PictureHeader, ReadsTheJpegSizeBaselineAndProgressive) {
  for (const char marker : {'\xC0', '\xC2'}) {
    std::string bytes = jpeg_file(640, 480);
    bytes[bytes.find('\xC0')] = marker;
    const auto header = read_picture_header(bytes);
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(header->format, FileFormat::kJpeg);
    EXPECT_EQ(header->width, 640);
    EXPECT_EQ(header->height, 480);
  }
}

TEST(PictureHeader, AcceptsWhatCamerasAppendToAJpeg) {
  EXPECT_TRUE(read_picture_header(jpeg_file(8, 8) + std::string("MPF\0\0\0", 6)));
}

TEST(PictureHeader, RefusesEveryTruncationOfAPng) {
  const std::string whole = black_png(32, 32);
  for (std::size_t n = 4; n < whole.size(); ++n) {
    EXPECT_THAT(refusal(std::string_view(whole).substr(0, n)), HasSubstr("cut off")) << n;
  }
  EXPECT_THAT(refusal(std::string_view(whole).substr(0, whole.size() - 20)), HasSubstr("cut off in chunk IDAT"));
}

TEST(PictureHeader, RefusesEveryTruncationOfAJpeg) {
  const std::string whole = jpeg_file(32, 32);
  for (std::size_t n = 3; n < whole.size(); ++n) {
    EXPECT_THAT(refusal(std::string_view(whole).substr(0, n)), HasSubstr("cut off")) << n;
  }
}

TEST(PictureHeader, RefusesEveryFlippedBitOfAPng) {
  const std::string whole = black_png(16, 16);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(read_picture_header(bytes)) << "bit " << bit;
  }
}

TEST(PictureHeader, SaysWhatAFileIsInstead) {
  EXPECT_EQ(refusal(""), "is empty");
  EXPECT_EQ(refusal("GIF89a and more"), "is neither PNG nor JPEG");
  EXPECT_EQ(refusal("\x89PN"), "is neither PNG nor JPEG");
  EXPECT_THAT(refusal(mp4_ftyp()), HasSubstr("an MP4 clip"));
  EXPECT_EQ(clip_refusal(black_png(8, 8)), "is not an MP4 file");
}

TEST(PictureHeader, RefusesPngsPutTogetherWrongly) {
  const std::string sig(kPngSignature);
  const std::string idat = png_chunk("IDAT", "x");
  const std::string iend = png_chunk("IEND", "");
  EXPECT_THAT(refusal(sig + idat + png_ihdr(8, 8) + iend), HasSubstr("does not begin with its header"));
  EXPECT_THAT(refusal(sig + png_ihdr(8, 8) + png_ihdr(8, 8) + idat + iend), HasSubstr("two header"));
  EXPECT_THAT(refusal(sig + png_ihdr(8, 8) + iend), HasSubstr("no pixels"));
  EXPECT_THAT(refusal(sig + png_ihdr(8, 8) + idat + iend + "zip"), HasSubstr("goes on after its end"));
  EXPECT_THAT(refusal(sig + png_ihdr(0, 8) + idat + iend), HasSubstr("0x8"));
  EXPECT_THAT(refusal(sig + png_ihdr(0x80000000U, 8) + idat + iend), HasSubstr("2147483648x8"));
  EXPECT_THAT(refusal(sig + png_ihdr(8, 8, 5) + idat + iend), HasSubstr("colour type"));
  EXPECT_THAT(refusal(sig + png_chunk("IHDR", "short") + idat + iend), HasSubstr("5 bytes instead of 13"));
}

TEST(PictureHeader, RefusesJpegsThatLie) {
  const std::string soi = "\xFF\xD8";
  EXPECT_THAT(refusal(soi + jpeg_segment('\xDA', "x")), HasSubstr("pixels before its frame header"));
  EXPECT_THAT(refusal(soi + jpeg_frame_header(8, 8) + "\xFF\xD9"), HasSubstr("no pixels"));
  EXPECT_THAT(refusal(soi + jpeg_frame_header(8, 0)), HasSubstr("8x0"));
  EXPECT_THAT(refusal(soi + jpeg_frame_header(8, 8, '\xC3')), HasSubstr("not supported"));
  EXPECT_THAT(refusal(soi + jpeg_frame_header(8, 8) + jpeg_frame_header(9, 9)), HasSubstr("two frame headers"));
  EXPECT_THAT(refusal(soi + std::string("\xFF\xE0\x00\x01", 4)), HasSubstr("no length"));
  EXPECT_THAT(refusal(soi + jpeg_frame_header(8, 8) + "junk"), HasSubstr("no marker"));
}

TEST(PictureHeader, SurvivesNoise) {
  std::mt19937_64 random(20261130);  // seed in case one of these ever fails
  const std::string files[] = {black_png(16, 16), jpeg_file(16, 16), mp4_ftyp() + mp4_moov(16, 16, 9)};
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = files[round % 3];
    for (int i = 0; i < 4; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(random() % (bytes.size() + 1));
    (void)read_picture_header(bytes);
    (void)read_clip_header(bytes);
  }
}

TEST(ClipHeader, CountsTheSamplesOfAPlainFile) {
  const auto header = read_clip_header(mp4_ftyp() + mp4_moov(512, 288, 49) + mp4_box("mdat", "pixels"));
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->width, 512);
  EXPECT_EQ(header->height, 288);
  EXPECT_EQ(header->n_frames, 49);
}

TEST(ClipHeader, AddsTheFragmentsOfItsTrackOnly) {
  const auto header = read_clip_header(mp4_ftyp() + mp4_moov(512, 288, 0) + mp4_moof(7, 8) + mp4_box("mdat", "a") +
                                       mp4_moof(7, 1) + mp4_box("mdat", "b") + mp4_moof(3, 100));
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->n_frames, 9);
}

TEST(ClipHeader, RefusesEveryTruncationInsideABox) {
  const std::string whole = mp4_ftyp() + mp4_moov(512, 288, 49) + mp4_box("mdat", "pixels");
  const std::size_t after_moov = whole.size() - 14;
  for (std::size_t n = 8; n < whole.size(); ++n) {
    if (n != after_moov) {
      EXPECT_THAT(clip_refusal(std::string_view(whole).substr(0, n)), HasSubstr("cut off")) << n;
    }
  }
}

TEST(ClipHeader, SaysWhyAClipCanNotBeUsed) {
  EXPECT_EQ(clip_refusal(""), "is empty");
  EXPECT_EQ(clip_refusal("not a clip at all"), "is not an MP4 file");
  EXPECT_THAT(clip_refusal(mp4_ftyp() + mp4_box("mdat", "x")), HasSubstr("no box moov"));
  EXPECT_THAT(clip_refusal(mp4_ftyp() + mp4_moov(8, 8, 9, "soun")), HasSubstr("no video track"));
  EXPECT_THAT(clip_refusal(mp4_ftyp() + mp4_moov(8, 8, 9, "vide", "hev1")), HasSubstr("'hev1', not H.264"));
  EXPECT_THAT(clip_refusal(mp4_ftyp() + mp4_moov(8, 8, 0)), HasSubstr("no frames"));
  EXPECT_THAT(clip_refusal(mp4_ftyp() + mp4_moov(0, 8, 9)), HasSubstr("0x8"));
  EXPECT_THAT(clip_refusal(mp4_ftyp() + mp4_moof(7, 9) + mp4_moov(8, 8, 0)), HasSubstr("before box moov"));
  EXPECT_THAT(clip_refusal(mp4_ftyp() + mp4_moov(8, 8, 0xFFFFFFFFU)), HasSubstr("4294967295 frames"));
  EXPECT_THAT(clip_refusal(mp4_ftyp() + be32_bytes(4) + "moov"), HasSubstr("smaller than its head"));
}

}  // namespace
}  // namespace merope::media
