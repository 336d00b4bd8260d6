#include "core/media/picture_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <random>
#include <string>

#include "core/media/clip_writer.h"
#include "tests/media/picture_bytes.h"
#include "tests/media/test_clips.h"

namespace merope::media {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the makers of test_clips.h and picture_bytes.h
using ::testing::HasSubstr;

std::string refusal(const Result<RgbFrames>& result) {
  EXPECT_FALSE(result.has_value());
  if (result) {
    return "";
  }
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  return result.error().message;
}

std::string packed(const std::string& raw) {
  std::string out(compressBound(static_cast<uLong>(raw.size())), '\0');
  auto size = static_cast<uLongf>(out.size());
  compress(reinterpret_cast<Bytef*>(out.data()),
           &size,
           reinterpret_cast<const Bytef*>(raw.data()),
           static_cast<uLong>(raw.size()));
  out.resize(size);
  return out;
}

std::string png_file(
    std::uint32_t width, std::uint32_t height, char colour_type, const std::string& rows, const std::string& extra = {}) {
  return std::string(kPngSignature) + png_ihdr(width, height, colour_type) + extra + png_chunk("IDAT", packed(rows)) +
         png_chunk("IEND", "");
}

// A picture as another program writes it: our frame through a PNG through ffmpeg.
std::string through_ffmpeg(const RgbFrames& frame, const std::string& options, const std::string& extension) {
  const TempDir dir;
  const auto png = encode_png(frame, 0);
  const std::string in = dir.write("in.png", *png);
  const ToolOutput tool =
      run_tool(dir, "ffmpeg -v error -i " + in + " " + options + " -bitexact " + dir.path("out." + extension));
  EXPECT_EQ(tool.errors, "");
  return dir.read("out." + extension);
}

TEST(DecodePicture, IsTheInverseOfEncodePng) {
  const RgbFrames source = moving_waves(2, 47, 29, 30);
  const auto png = encode_png(source, 1);
  ASSERT_TRUE(png) << png.error().message;
  const auto decoded = decode_picture(*png, 47, 29);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->n_frames, 1);
  EXPECT_TRUE(std::ranges::equal(decoded->pixels, source.frame(1)));
}

TEST(DecodePicture, ReadsEveryKindOfPng) {
  // Two pixels a row: (10, 20, 30) and (200, 100, 0), or grey 10 and 200.
  const std::vector<std::uint8_t> colours = {10, 20, 30, 200, 100, 0};
  const std::vector<std::uint8_t> greys = {10, 10, 10, 200, 200, 200};
  const auto rgb = decode_picture(png_file(2, 1, 2, std::string("\x00\x0A\x14\x1E\xC8\x64\x00", 7)), 2, 1);
  ASSERT_TRUE(rgb) << rgb.error().message;
  EXPECT_EQ(rgb->pixels, colours);
  const auto rgba = decode_picture(png_file(2, 1, 6, std::string("\x00\x0A\x14\x1E\x00\xC8\x64\x00\x80", 9)), 2, 1);
  ASSERT_TRUE(rgba) << rgba.error().message;
  EXPECT_EQ(rgba->pixels, colours) << "alpha is dropped, not mixed in";
  const auto grey = decode_picture(png_file(2, 1, 0, std::string("\x00\x0A\xC8", 3)), 2, 1);
  ASSERT_TRUE(grey) << grey.error().message;
  EXPECT_EQ(grey->pixels, greys);
  const auto grey_alpha = decode_picture(png_file(2, 1, 4, std::string("\x00\x0A\x00\xC8\xFF", 5)), 2, 1);
  ASSERT_TRUE(grey_alpha) << grey_alpha.error().message;
  EXPECT_EQ(grey_alpha->pixels, greys);
  const auto palette = decode_picture(
      png_file(2, 1, 3, std::string("\x00\x01\x00", 3), png_chunk("PLTE", std::string("\xC8\x64\x00\x0A\x14\x1E", 6))),
      2,
      1);
  ASSERT_TRUE(palette) << palette.error().message;
  EXPECT_EQ(palette->pixels, colours);
}

TEST(DecodePicture, ReadsInterlacedAndDeepPngsOfAnotherProgram) {
  const RgbFrames source = moving_waves(1, 45, 31);
  const auto interlaced = decode_picture(through_ffmpeg(source, "-flags +ildct", "png"), 45, 31);
  ASSERT_TRUE(interlaced) << interlaced.error().message;
  EXPECT_TRUE(interlaced->pixels == source.pixels);
  const auto deep = decode_picture(through_ffmpeg(source, "-pix_fmt rgb48be", "png"), 45, 31);
  ASSERT_TRUE(deep) << deep.error().message;
  EXPECT_GT(psnr(deep->pixels, source.pixels), 48);
}

TEST(DecodePicture, ReadsJpegsInTheirOwnColours) {
  const RgbFrames waves = moving_waves(1, 64, 48);
  for (const char* format : {"yuvj444p", "yuvj420p"}) {
    const auto decoded = decode_picture(through_ffmpeg(waves, std::string("-q:v 2 -pix_fmt ") + format, "jpg"), 64, 48);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_GT(psnr(decoded->pixels, waves.pixels), 33) << format;
  }
  const RgbFrames bars = colour_bars(1, 128, 32);
  const auto decoded = decode_picture(through_ffmpeg(bars, "-q:v 1 -pix_fmt yuvj444p", "jpg"), 128, 32);
  ASSERT_TRUE(decoded) << decoded.error().message;
  for (std::size_t bar = 0; bar < kBars.size(); ++bar) {
    const std::size_t at = (16U * 128 + bar * 16 + 8) * 3;
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(decoded->pixels[at + c], kBars[bar][c], 5) << "bar " << bar << " channel " << c;
    }
  }
}

TEST(DecodePicture, RefusesABombByItsHeaderAndTakesNoMemory) {
  const std::string bomb = std::string(kPngSignature) + png_ihdr(20'000, 20'000) +
                           png_chunk("IDAT", packed(std::string(1 << 20, '\0'))) + png_chunk("IEND", "");
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_EQ(refusal(decode_picture(bomb, 512, 288)), "is 20000x20000 pixels large, the clip is 512x288");
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 8 * 1024) << "KiB";
}

TEST(DecodePicture, RefusesMoreRowsThanTheHeaderLets) {
  // Many megabytes of zeros behind a small header: inflation stops at what the size needs.
  const auto decoded = decode_picture(png_file(2, 1, 2, std::string(std::size_t{64} << 20U, '\0')), 2, 1);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->pixels, std::vector<std::uint8_t>(6, 0));
}

TEST(DecodePicture, RefusesAPngWhoseRowsAreMissing) {
  const std::string rows(7 * 3, '\0');  // 2x4 pixels would be 4 rows of 7 bytes
  EXPECT_EQ(refusal(decode_picture(png_file(2, 4, 2, rows), 2, 4)), "PNG is damaged: its pixels end after 21 of 28 bytes");
  const std::string broken =
      std::string(kPngSignature) + png_ihdr(2, 4) + png_chunk("IDAT", "not zlib at all") + png_chunk("IEND", "");
  EXPECT_THAT(refusal(decode_picture(broken, 2, 4)), HasSubstr("its pixels end after 0 of 28"));
}

TEST(DecodePicture, RefusesAJpegWithoutItsLastRows) {
  std::string jpeg = through_ffmpeg(moving_waves(1, 64, 64, 30), "-q:v 2", "jpg");
  ASSERT_TRUE(decode_picture(jpeg, 64, 64));
  jpeg = jpeg.substr(0, jpeg.size() / 2) + "\xFF\xD9";  // whole to the header parser
  EXPECT_THAT(refusal(decode_picture(jpeg, 64, 64)), HasSubstr("is damaged"));
  EXPECT_THAT(refusal(decode_picture(jpeg.substr(0, jpeg.size() - 2), 64, 64)), HasSubstr("cut off"));
}

TEST(DecodePicture, RefusesMislabelledFiles) {
  EXPECT_EQ(refusal(decode_picture("GIF89a", 8, 8)), "is neither PNG nor JPEG");
  EXPECT_THAT(refusal(decode_picture(mp4_ftyp() + mp4_moov(8, 8, 9), 8, 8)), HasSubstr("MP4 clip"));
  EXPECT_EQ(refusal(decode_clip(black_png(8, 8), 8, 8, 1)), "is not an MP4 file");
}

std::string written_clip(const RgbFrames& frames, ClipFormat format = ClipFormat::kH264) {
  ClipSettings settings;
  settings.format = format;
  settings.width = frames.width;
  settings.height = frames.height;
  std::string file;
  auto writer = ClipWriter::open(settings, [&](ClipFragment fragment) {
    file += fragment.bytes;
    return Status();
  });
  EXPECT_TRUE((*writer)->write(frames));
  EXPECT_TRUE((*writer)->finish());
  return file;
}

TEST(DecodeClip, TakesTheFirstFrames) {
  const std::string file = written_clip(moving_waves(17, 32, 32, 20), ClipFormat::kRgbExact);
  const auto decoded = decode_clip(file, 32, 32, 9);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->n_frames, 9);
  EXPECT_TRUE(decoded->pixels == moving_waves(9, 32, 32, 20).pixels);
}

TEST(DecodeClip, ReadsAPlainMp4WithReorderedFrames) {
  const TempDir dir;
  const RgbFrames source = moving_waves(13, 64, 48);
  const std::string exact = dir.write("in.mp4", written_clip(source, ClipFormat::kRgbExact));
  const ToolOutput tool = run_tool(dir,
                                   "ffmpeg -v error -i " + exact +
                                       " -vf scale=out_color_matrix=bt709:out_range=tv -colorspace bt709 -color_range tv"
                                       " -c:v libx264 -crf 8 -bf 3 -pix_fmt yuv420p " +
                                       dir.path("plain.mp4"));
  ASSERT_EQ(tool.exit_code, 0) << tool.errors;
  const auto decoded = decode_clip(dir.read("plain.mp4"), 64, 48, 13);
  ASSERT_TRUE(decoded) << decoded.error().message;
  for (int i = 0; i < 13; ++i) {
    EXPECT_GT(psnr(decoded->frame(i), source.frame(i)), 33) << "frame " << i;
  }
}

TEST(DecodeClip, SaysWhatDoesNotFit) {
  const std::string file = written_clip(moving_waves(9, 32, 32));
  EXPECT_EQ(refusal(decode_clip(file, 64, 32, 9)), "is 32x32 pixels large, the clip is 64x32");
  EXPECT_EQ(refusal(decode_clip(file, 32, 32, 13)), "has 9 frames, 13 are asked for");
}

TEST(DecodeClip, RefusesCutOffAndDamagedClips) {
  const std::string file = written_clip(moving_waves(9, 64, 64, 20));
  EXPECT_THAT(refusal(decode_clip(file.substr(0, file.size() / 2), 64, 64, 9)), HasSubstr("cut off"));
  std::string broken = file;
  const std::size_t pixels = broken.find("mdat") + 1500;  // behind the encoder's own remarks
  std::fill(broken.begin() + static_cast<std::ptrdiff_t>(pixels),
            broken.begin() + static_cast<std::ptrdiff_t>(pixels) + 400,
            '\x55');
  EXPECT_THAT(refusal(decode_clip(broken, 64, 64, 9)), HasSubstr("is damaged"));
}

TEST(DecodeClip, SurvivesNoise) {
  std::mt19937_64 random(20261130);  // printed by nobody: it never changes
  const std::string file = written_clip(moving_waves(5, 32, 32, 20));
  for (int round = 0; round < 300; ++round) {
    std::string bytes = file;
    for (int i = 0; i < 3; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    (void)decode_clip(bytes, 32, 32, 5);
  }
}

}  // namespace
}  // namespace merope::media
