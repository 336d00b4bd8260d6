#include "server/request_limits.h"

#include <gtest/gtest.h>

#include "tests/media/picture_bytes.h"
#include "tests/support/proto/requests.h"

namespace merope::server {
namespace {

using media::testing::black_png;
using media::testing::jpeg_file;
using media::testing::mp4_box;
using media::testing::mp4_ftyp;
using media::testing::mp4_moov;
using merope::testing::good_request;
using merope::testing::toy_model;

// The clip is 64x32 and has nine frames.
wire::CheckedRequest checked(const v1::GenerationRequest& request, const GenerationLimits& limits = {}) {
  const std::vector<ModelDescription> models = {toy_model()};
  wire::CheckedRequest result = wire::check_request(request, models, limits, 1);
  check_conditioning_files(request.conditioning(), limits, result);
  return result;
}

v1::GenerationRequest with_pictures(const std::vector<std::string>& files) {
  v1::GenerationRequest request = good_request();
  for (const std::string& file : files) {
    request.mutable_conditioning()->mutable_pictures()->add_files(file);
  }
  return request;
}

v1::GenerationRequest with_clip(std::string bytes) {
  v1::GenerationRequest request = good_request();
  request.mutable_conditioning()->set_mp4_clip(std::move(bytes));
  return request;
}

std::string clip_of(std::uint32_t n_frames) {
  return mp4_ftyp() + mp4_moov(64, 32, n_frames) + mp4_box("mdat", "x");
}

void expect_one(const wire::CheckedRequest& result, const std::string& field, const std::string& part) {
  ASSERT_EQ(result.violations.size(), 1U);
  EXPECT_EQ(result.violations.list()[0].field, field);
  EXPECT_NE(result.violations.list()[0].description.find(part), std::string::npos)
      << result.violations.list()[0].description;
}

TEST(ConditioningFiles, ArePngOrJpegOfTheClipsSize) {
  const auto result = checked(
      with_pictures({black_png(64, 32), jpeg_file(64, 32), black_png(64, 32), black_png(64, 32), black_png(64, 32)}));
  EXPECT_TRUE(result.violations.empty());
  EXPECT_EQ(result.spec.n_conditioning_frames, 5);
}

TEST(ConditioningFiles, OfAnotherSizeAreNotStretched) {
  expect_one(
      checked(with_pictures({black_png(65, 32)})), "conditioning.pictures.files[0]", "is 65x32, but the clip is 64x32");
}

TEST(ConditioningFiles, ThatAreCutOffAreNamed) {
  const std::string png = black_png(64, 32);
  expect_one(checked(with_pictures({png, jpeg_file(64, 32), png.substr(0, png.size() - 20), png, png})),
             "conditioning.pictures.files[2]",
             "cut off");
}

TEST(ConditioningFiles, ThatAreSomethingElseAreNamed) {
  expect_one(checked(with_pictures({"GIF89a"})), "conditioning.pictures.files[0]", "neither PNG nor JPEG");
  expect_one(checked(with_pictures({""})), "conditioning.pictures.files[0]", "empty");
}

// 20,000 x 20,000 pixels would be 1.2 GB; the file has to be refused for what its header says.
TEST(ConditioningFiles, ThatAreBombsAreRefusedByTheirHeader) {
  expect_one(checked(with_pictures({black_png(20'000, 200)})), "conditioning.pictures.files[0]", "is 20000x200");
}

TEST(ConditioningFiles, OverTheByteLimitAreNotOpened) {
  GenerationLimits limits;
  limits.max_picture_bytes = 10;
  expect_one(checked(with_pictures({"not a picture at all"}), limits), "conditioning.pictures.files[0]", "has 20 bytes");
}

TEST(ConditioningClip, GivesItsNumberOfFrames) {
  const auto result = checked(with_clip(clip_of(5)));
  EXPECT_TRUE(result.violations.empty());
  EXPECT_EQ(result.spec.n_conditioning_frames, 5);
}

TEST(ConditioningClip, HasToHoldAValidNumberOfFrames) {
  expect_one(checked(with_clip(clip_of(4))), "conditioning.mp4_clip", "4 frames");
  expect_one(checked(with_clip(clip_of(9))), "conditioning.mp4_clip", "fewer than the 9");
}

TEST(ConditioningClip, CanBeUsedInPart) {
  v1::GenerationRequest request = with_clip(clip_of(30));
  request.mutable_conditioning()->set_clip_frames(5);
  const auto result = checked(request);
  EXPECT_TRUE(result.violations.empty());
  EXPECT_EQ(result.spec.n_conditioning_frames, 5);

  request = with_clip(clip_of(4));
  request.mutable_conditioning()->set_clip_frames(5);
  expect_one(checked(request), "conditioning.clip_frames", "5 frames are asked for, but the clip has 4");
}

TEST(ConditioningClip, ThatIsAPictureIsNamed) {
  EXPECT_EQ(checked(with_clip(black_png(64, 32))).violations.list().at(0).field, "conditioning.mp4_clip");
}

}  // namespace
}  // namespace merope::server
