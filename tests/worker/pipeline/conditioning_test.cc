#include "worker/pipeline/conditioning.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/torch/golden.h"
#include "tests/support/torch/hash_weights.h"
#include "tests/support/torch/vae_shapes.h"
#include "tests/worker/pipeline/recording_observer.h"
#include "worker/pipeline/clip_decoder.h"

namespace merope::worker {
namespace {

media::RgbFrames noise_frames(int n_frames, int height, int width, std::uint64_t seed) {
  media::RgbFrames frames{n_frames, height, width, {}};
  frames.pixels.resize(static_cast<std::size_t>(n_frames) * frames.frame_bytes());
  for (std::size_t i = 0; i < frames.pixels.size(); ++i) {
    frames.pixels[i] = static_cast<std::uint8_t>((test::hash_value(seed, i) + 1) * 127.9);
  }
  return frames;
}

WanVae vae22() {
  const VaeConfig config = test::vae_config_v22();
  const test::MapWeightSource source(test::hash_weights(test::vae_shapes(config)));
  Result<WanVae> vae = WanVae::load(config, source, at::kCPU, at::kFloat);
  EXPECT_TRUE(vae) << (vae ? "" : vae.error().message);
  return *std::move(vae);
}

TEST(Pixels, BytesComeBackExactly) {
  media::RgbFrames all{1, 16, 16, {}};
  for (int i = 0; i < 3 * 256; ++i) {
    all.pixels.push_back(static_cast<std::uint8_t>(i % 256));
  }
  EXPECT_EQ(to_rgb_frames(to_pixels(all)).pixels, all.pixels);
}

TEST(Pixels, AreChannelFirstFromMinusOneToOne) {
  const media::RgbFrames frames{2, 1, 2, {0, 255, 51, 1, 2, 3, 4, 5, 6, 7, 8, 9}};
  const at::Tensor pixels = to_pixels(frames);
  ASSERT_EQ(pixels.sizes(), (at::IntArrayRef{1, 3, 2, 1, 2}));
  EXPECT_EQ(pixels[0][0][0][0][0].item<float>(), -1);
  EXPECT_EQ(pixels[0][1][0][0][0].item<float>(), 1);
  EXPECT_NEAR(pixels[0][2][0][0][0].item<float>(), -0.6, 1e-6);
  EXPECT_NEAR(pixels[0][1][1][0][1].item<float>(), 2 * 8 / 255.0 - 1, 1e-6);
}

TEST(Pixels, AreRoundedNotCutOff) {
  // 0.5 v + 0.5 in 255ths: 100.6, and the tie 100.5, which goes to the even neighbour.
  const at::Tensor pixels = at::tensor({2 * 100.6F / 255 - 1, -1.5F, 1.5F}).view({1, 3, 1, 1, 1});
  EXPECT_EQ(to_rgb_frames(pixels).pixels, (std::vector<std::uint8_t>{101, 0, 255}));
  EXPECT_EQ(to_rgb_frames(at::zeros({1, 3, 1, 1, 1})).pixels, (std::vector<std::uint8_t>{128, 128, 128}));  // 127.5
}

TEST(EncodePrefix, FramesOfAShorterPrefixMakeTheSameLatents) {
  const WanVae vae = vae22();
  const media::RgbFrames nine = noise_frames(9, 32, 32, 5);
  test::RecordingObserver observer;
  const Result<at::Tensor> all = encode_prefix(vae, nine, observer);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->sizes(), (at::IntArrayRef{1, 48, 3, 2, 2}));
  EXPECT_EQ(observer.count(Stage::kEncode), 3);
  EXPECT_TRUE(test::near(*all, vae.encode(to_pixels(nine)), 1e-5));
  for (const int n : {1, 5}) {
    media::RgbFrames shorter = nine;
    shorter.n_frames = n;
    shorter.pixels.resize(static_cast<std::size_t>(n) * nine.frame_bytes());
    const Result<at::Tensor> some = encode_prefix(vae, shorter, observer);
    ASSERT_TRUE(some);
    EXPECT_TRUE(at::equal(*some, all->narrow(2, 0, (n - 1) / 4 + 1))) << n;
  }
}

TEST(DecodeClip, HandsFramesOnWhileItDecodesAndKeepsTheConditioningFrames) {
  const WanVae vae = vae22();
  const media::RgbFrames conditioning = noise_frames(5, 32, 32, 6);
  const at::Tensor latents = test::hash_input(7, {1, 48, 3, 2, 2});
  test::RecordingObserver restored;
  int asked = 0;
  restored.on_may_continue = [&] {
    ++asked;
    // Before the last latent frame the first five frames are out.
    EXPECT_EQ(restored.clip.n_frames, asked == 1 ? 0 : asked == 2 ? 1 : 5);
    return Status();
  };
  const Result<int> n_frames = decode_clip(vae, latents, conditioning, restored);
  ASSERT_TRUE(n_frames);
  EXPECT_EQ(*n_frames, 9);
  EXPECT_EQ(asked, 3);

  test::RecordingObserver plain;
  ASSERT_TRUE(decode_clip(vae, latents, {}, plain));
  const auto five_frames = static_cast<std::ptrdiff_t>(conditioning.pixels.size());
  EXPECT_TRUE(std::equal(conditioning.pixels.begin(), conditioning.pixels.end(), restored.clip.pixels.begin()));
  EXPECT_TRUE(std::equal(plain.clip.pixels.begin() + five_frames,
                         plain.clip.pixels.end(),
                         restored.clip.pixels.begin() + five_frames,
                         restored.clip.pixels.end()));
}

TEST(DecodeClip, StopsWhenTheObserverSaysSo) {
  test::RecordingObserver observer;
  observer.on_may_continue = [&]() -> Status {
    return observer.clip.n_frames == 0 ? Status() : Error{ErrorCode::kCancelled, "cancelled"};
  };
  const Result<int> n_frames = decode_clip(vae22(), test::hash_input(7, {1, 48, 3, 2, 2}), {}, observer);
  ASSERT_FALSE(n_frames);
  EXPECT_EQ(n_frames.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(observer.clip.n_frames, 1);
}

}  // namespace
}  // namespace merope::worker
