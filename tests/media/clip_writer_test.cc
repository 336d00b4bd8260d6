#include "core/media/clip_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "core/media/picture_decoder.h"
#include "core/media/picture_header.h"
#include "tests/media/test_clips.h"

namespace merope::media {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the makers of test_clips.h
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

ClipSettings settings_for(const RgbFrames& frames, ClipFormat format) {
  ClipSettings settings;
  settings.format = format;
  settings.width = frames.width;
  settings.height = frames.height;
  return settings;
}

WrittenClip write_clip(const RgbFrames& frames, const ClipSettings& settings) {
  WrittenClip clip;
  auto writer = ClipWriter::open(settings, [&](ClipFragment fragment) {
    clip.fragments.push_back(std::move(fragment));
    return Status();
  });
  EXPECT_TRUE(writer) << writer.error().message;
  EXPECT_TRUE((*writer)->write(frames));
  EXPECT_TRUE((*writer)->finish());
  return clip;
}

WrittenClip write_clip(const RgbFrames& frames, ClipFormat format) {
  return write_clip(frames, settings_for(frames, format));
}

TEST(H264Clip, DecodesCloseToTheSource) {
  const RgbFrames source = moving_waves(17, 128, 96);
  const auto decoded = decode_clip(write_clip(source, ClipFormat::kH264).file(), 128, 96, 17);
  ASSERT_TRUE(decoded) << decoded.error().message;
  for (int i = 0; i < 17; ++i) {
    EXPECT_GT(psnr(source.frame(i), decoded->frame(i)), 36.0) << "frame " << i;
  }
}

// BT.601 on one side and BT.709 on the other shifts these colours by 15 to 30 levels.
void expect_bars(std::span<const std::uint8_t> frame, int width, int height) {
  for (std::size_t bar = 0; bar < kBars.size(); ++bar) {
    const int x = static_cast<int>(bar) * width / 8 + width / 16;
    const std::size_t at =
        (static_cast<std::size_t>(height / 2) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)) * 3;
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(frame[at + c], kBars[bar][c], 3) << "bar " << bar << " channel " << c;
    }
  }
}

TEST(H264Clip, KeepsTheColoursOfBars) {
  const std::string file = write_clip(colour_bars(2, 256, 64), ClipFormat::kH264).file();
  const auto decoded = decode_clip(file, 256, 64, 2);
  ASSERT_TRUE(decoded) << decoded.error().message;
  expect_bars(decoded->frame(1), 256, 64);
}

TEST(H264Clip, KeepsTheColoursOfBarsInAnotherReader) {
  const TempDir dir;
  const std::string path = dir.write("bars.mp4", write_clip(colour_bars(2, 256, 64), ClipFormat::kH264).file());
  const ToolOutput raw = run_tool(dir,
                                  "ffmpeg -v error -i " + path +
                                      " -vf scale=in_color_matrix=bt709:in_range=tv:flags=accurate_rnd+full_chroma_int"
                                      " -frames:v 1 -f rawvideo -pix_fmt rgb24 -");
  ASSERT_EQ(raw.text.size(), 256U * 64 * 3) << raw.errors;
  expect_bars({reinterpret_cast<const std::uint8_t*>(raw.text.data()), raw.text.size()}, 256, 64);
}

TEST(H264Clip, SaysWhichColoursItHolds) {
  const TempDir dir;
  const std::string path = dir.write("a.mp4", write_clip(moving_waves(1, 64, 64), ClipFormat::kH264).file());
  const ToolOutput probe =
      run_tool(dir,
               "ffprobe -v error -of default=nw=1 -show_entries "
               "stream=codec_name,pix_fmt,color_range,color_space,color_transfer,color_primaries,avg_frame_rate " +
                   path);
  for (const char* line : {"codec_name=h264",
                           "pix_fmt=yuv420p",
                           "color_range=tv",
                           "color_space=bt709",
                           "color_transfer=bt709",
                           "color_primaries=bt709",
                           "avg_frame_rate=24/1"}) {
    EXPECT_THAT(probe.text, HasSubstr(line));
  }
}

TEST(RgbExactClip, DecodesToTheSameBytesAtAnySize) {
  for (const auto& [width, height] : {std::pair{128, 96}, std::pair{33, 17}, std::pair{1, 1}}) {
    const RgbFrames source = moving_waves(9, width, height, 30);
    const auto decoded = decode_clip(write_clip(source, ClipFormat::kRgbExact).file(), width, height, 9);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_TRUE(decoded->pixels == source.pixels) << width << "x" << height;
  }
}

TEST(PngClip, IsOneExactFilePerFrame) {
  const RgbFrames source = moving_waves(3, 31, 18, 30);
  const WrittenClip clip = write_clip(source, ClipFormat::kPngFrames);
  ASSERT_EQ(clip.fragments.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    const ClipFragment& fragment = clip.fragments[static_cast<std::size_t>(i)];
    EXPECT_EQ(fragment.first_frame, i);
    EXPECT_EQ(fragment.n_frames, 1);
    const auto decoded = decode_picture(fragment.bytes, 31, 18);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_TRUE(std::ranges::equal(decoded->frame(0), source.frame(i)));
  }
}

TEST(Mp4Fragments, LeaveAsSoonAsTheirLastFrameIsWritten) {
  const RgbFrames source = moving_waves(17, 64, 64);
  std::vector<std::pair<int, int>> seen;  // first frame, frames
  ClipSettings settings = settings_for(source, ClipFormat::kH264);
  settings.frames_per_fragment = 4;
  auto writer = ClipWriter::open(settings, [&](ClipFragment fragment) {
    seen.emplace_back(fragment.first_frame, fragment.n_frames);
    return Status();
  });
  ASSERT_TRUE(writer);
  EXPECT_THAT(seen, ElementsAre(std::pair(0, 0)));  // the start segment, before any frame exists
  const auto write_one = [&](int i) {
    const auto frame = source.frame(i);
    return (*writer)->write(RgbFrames{1, 64, 64, {frame.begin(), frame.end()}});
  };
  for (int i = 0; i < 17; ++i) {
    ASSERT_TRUE(write_one(i));
    EXPECT_EQ(seen.size(), 1U + static_cast<std::size_t>(i + 1) / 4) << "after frame " << i;
  }
  ASSERT_TRUE((*writer)->finish());
  EXPECT_THAT(
      seen,
      ElementsAre(std::pair(0, 0), std::pair(0, 4), std::pair(4, 4), std::pair(8, 4), std::pair(12, 4), std::pair(16, 1)));
}

TEST(Mp4Fragments, EachBeginningOfTheStreamIsAClip) {
  const RgbFrames source = moving_waves(24, 64, 64);
  const WrittenClip clip = write_clip(source, ClipFormat::kH264);
  std::string file;
  int frames = 0;
  for (const ClipFragment& fragment : clip.fragments) {
    file += fragment.bytes;
    frames += fragment.n_frames;
    if (frames > 0) {
      const auto header = read_clip_header(file);
      ASSERT_TRUE(header) << header.error().message;
      EXPECT_EQ(header->n_frames, frames);
      EXPECT_TRUE(decode_clip(file, 64, 64, frames));
      EXPECT_FALSE(decode_clip(file, 64, 64, frames + 1));
    }
  }
  EXPECT_EQ(frames, 24);
}

class Mp4Probe : public ::testing::TestWithParam<ClipFormat> {};

// ffprobe's exit code is 0 for a cut-off file too: the count of frames and an empty stderr are the test.
TEST_P(Mp4Probe, CountsEveryFrameOfTheWholeStream) {
  const TempDir dir;
  const std::string path = dir.write("a.mp4", write_clip(moving_waves(49, 128, 96, 5), GetParam()).file());
  const ToolOutput probe =
      run_tool(dir, "ffprobe -v error -count_frames -of csv=p=0 -show_entries stream=nb_read_frames " + path);
  EXPECT_EQ(std::atoi(probe.text.c_str()), 49);
  EXPECT_EQ(probe.errors, "");
}

TEST_P(Mp4Probe, ReadsACutOffStreamUpToTheCut) {
  const TempDir dir;
  const WrittenClip clip = write_clip(moving_waves(49, 128, 96, 5), GetParam());
  const std::string file = clip.file();
  for (const std::size_t percent : {95U, 50U, 20U}) {
    const std::size_t cut = file.size() * percent / 100;
    int whole = 0;  // frames of fragments that are all there
    int begun = 0;  // and of the one that the cut goes through
    std::size_t end = 0;
    for (const ClipFragment& fragment : clip.fragments) {
      if (end < cut) {
        begun += fragment.n_frames;
      }
      end += fragment.bytes.size();
      if (end <= cut) {
        whole += fragment.n_frames;
      }
    }
    const std::string path = dir.write("cut.mp4", file.substr(0, cut));
    const ToolOutput probe =
        run_tool(dir, "ffprobe -v quiet -count_frames -of csv=p=0 -show_entries stream=nb_read_frames " + path);
    EXPECT_THAT(std::atoi(probe.text.c_str()), AllOf(Ge(whole), Le(begun))) << percent << " % of the bytes";
    EXPECT_GT(std::atoi(probe.text.c_str()), static_cast<int>(49 * percent / 100) - 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Mp4Probe, ::testing::Values(ClipFormat::kH264, ClipFormat::kRgbExact));

class Mp4Times : public ::testing::TestWithParam<int> {};

TEST_P(Mp4Times, AreExactMultiplesOfTheFrameTime) {
  const TempDir dir;
  const int fps = GetParam();
  const RgbFrames source = moving_waves(17, 64, 64);
  ClipSettings settings = settings_for(source, ClipFormat::kH264);
  settings.fps = fps;
  const std::string path = dir.write("a.mp4", write_clip(source, settings).file());
  const ToolOutput base = run_tool(dir, "ffprobe -v error -of csv=p=0 -show_entries stream=time_base " + path);
  long ticks = 0;  // a second
  ASSERT_EQ(std::sscanf(base.text.c_str(), "1/%ld", &ticks), 1) << base.text;
  ASSERT_EQ(ticks % fps, 0);
  const ToolOutput packets = run_tool(dir, "ffprobe -v error -of csv=p=0 -show_entries packet=pts,dts,duration " + path);
  std::istringstream lines(packets.text);
  std::string line;
  long index = 0;
  while (std::getline(lines, line)) {
    long pts = -1;
    long dts = -1;
    long duration = -1;
    ASSERT_EQ(std::sscanf(line.c_str(), "%ld,%ld,%ld", &pts, &dts, &duration), 3) << line;
    EXPECT_EQ(pts, index * ticks / fps);
    EXPECT_EQ(dts, pts);
    EXPECT_EQ(duration, ticks / fps);
    ++index;
  }
  EXPECT_EQ(index, 17);
}

INSTANTIATE_TEST_SUITE_P(FramesASecond, Mp4Times, ::testing::Values(1, 10, 16, 24, 30, 120));

TEST(ClipWriter, GivesTheSameBytesAgain) {
  const RgbFrames source = moving_waves(17, 96, 64, 20);
  for (const ClipFormat format : {ClipFormat::kH264, ClipFormat::kRgbExact, ClipFormat::kPngFrames}) {
    ClipSettings settings = settings_for(source, format);
    settings.threads = 2;
    EXPECT_TRUE(write_clip(source, settings).file() == write_clip(source, settings).file());
  }
}

TEST(ClipWriter, GivesTheSameBytesHoweverTheFramesArrive) {
  const RgbFrames all = moving_waves(9, 64, 64);
  const std::string at_once = write_clip(all, ClipFormat::kH264).file();
  std::string one_by_one;
  auto writer = ClipWriter::open(settings_for(all, ClipFormat::kH264), [&](ClipFragment fragment) {
    one_by_one += fragment.bytes;
    return Status();
  });
  ASSERT_TRUE(writer);
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE((*writer)->write(moving_waves(1, 64, 64, 0, i)));
  }
  ASSERT_TRUE((*writer)->finish());
  EXPECT_TRUE(one_by_one == at_once);
}

TEST(ClipWriter, RefusesWhatAFormatCanNotHold) {
  ClipSettings settings;
  settings.width = 511;
  settings.height = 288;
  const auto sink = [](ClipFragment) { return Status(); };
  auto odd = ClipWriter::open(settings, sink);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(odd.error().message, HasSubstr("511x288"));
  settings.format = ClipFormat::kRgbExact;
  EXPECT_TRUE(ClipWriter::open(settings, sink));
  settings.width = 0;
  EXPECT_FALSE(ClipWriter::open(settings, sink));
  settings.width = 512;
  settings.threads = 0;
  EXPECT_FALSE(ClipWriter::open(settings, sink));
}

TEST(ClipWriter, RefusesFramesOfAnotherSize) {
  ClipSettings settings;
  settings.width = 64;
  settings.height = 64;
  auto writer = ClipWriter::open(settings, [](ClipFragment) { return Status(); });
  ASSERT_TRUE(writer);
  const Status status = (*writer)->write(moving_waves(1, 64, 32));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInternal);
  EXPECT_THAT(status.error().message, HasSubstr("64x32"));
}

TEST(ClipWriter, PassesAnErrorOfTheSinkOnUnchanged) {
  const RgbFrames source = moving_waves(16, 64, 64);
  const Error full{ErrorCode::kResourceExhausted, "disk full"};
  for (const ClipFormat format : {ClipFormat::kH264, ClipFormat::kRgbExact, ClipFormat::kPngFrames}) {
    int calls = 0;
    auto writer =
        ClipWriter::open(settings_for(source, format), [&](ClipFragment) { return ++calls == 2 ? Status(full) : Status(); });
    ASSERT_TRUE(writer);
    const Status status = (*writer)->write(source);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error(), full);
    EXPECT_EQ(calls, 2);
  }
}

}  // namespace
}  // namespace merope::media
