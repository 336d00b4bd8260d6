#include "worker/pipeline/clip_decoder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "worker/pipeline/conditioning.h"

namespace merope::worker {
namespace {

// Overwrites those of `frames`, the first of which is frame `first` of the clip, that are conditioning frames.
void restore(media::RgbFrames& frames, int first, const media::RgbFrames& conditioning) {
  for (int i = 0; i < frames.n_frames && first + i < conditioning.n_frames; ++i) {
    const auto exact = conditioning.frame(first + i);
    std::ranges::copy(
        exact, frames.pixels.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * frames.frame_bytes()));
  }
}

}  // namespace

Result<int> decode_clip(const WanVae& vae,
                        const at::Tensor& latents,
                        const media::RgbFrames& conditioning,
                        GenerationObserver& observer) {
  const std::int64_t n_latent = latents.size(2);
  StreamingVaeDecoder decoder(vae);
  int n_frames = 0;
  for (std::int64_t i = 0; i < n_latent; ++i) {
    MEROPE_RETURN_IF_ERROR(observer.may_continue());
    media::RgbFrames frames = to_rgb_frames(decoder.decode_latent_frame(latents.narrow(2, i, 1)));
    restore(frames, n_frames, conditioning);
    n_frames += frames.n_frames;
    MEROPE_RETURN_IF_ERROR(observer.frames(std::move(frames)));
    observer.progress(Stage::kDecode, static_cast<int>(i + 1), static_cast<int>(n_latent));
  }
  return n_frames;
}

}  // namespace merope::worker
