#include "worker/pipeline/conditioning.h"

#include <ATen/ATen.h>

#include <vector>

namespace merope::worker {
namespace {

// The latents of `n_latent` latent frames; chunk(i) gives the pixels of the i-th, one frame or four.
template <typename Chunk>
Result<at::Tensor> encode_chunks(const WanVae& vae, std::int64_t n_latent, GenerationObserver& observer, Chunk&& chunk) {
  StreamingVaeEncoder encoder(vae);
  std::vector<at::Tensor> latents;
  for (std::int64_t i = 0; i < n_latent; ++i) {
    MEROPE_RETURN_IF_ERROR(observer.may_continue());
    latents.push_back(encoder.encode_frames(chunk(i)));
    observer.progress(Stage::kEncode, static_cast<int>(i + 1), static_cast<int>(n_latent));
  }
  return at::cat(latents, 2);
}

std::int64_t n_latent_frames(std::int64_t n_frames) {
  return (n_frames - 1) / kTemporalScale + 1;
}

at::Tensor chunk_of(const at::Tensor& pixels, std::int64_t i) {
  return i == 0 ? pixels.narrow(2, 0, 1) : pixels.narrow(2, kTemporalScale * i - kTemporalScale + 1, kTemporalScale);
}

}  // namespace

at::Tensor to_pixels(const media::RgbFrames& frames) {
  const at::Tensor bytes = at::from_blob(
      const_cast<std::uint8_t*>(frames.pixels.data()), {1, frames.n_frames, frames.height, frames.width, 3}, at::kByte);
  return (bytes.permute({0, 4, 1, 2, 3}).to(at::kFloat) / 255.0).mul(2.0).sub(1.0).contiguous();
}

media::RgbFrames to_rgb_frames(const at::Tensor& pixels) {
  const at::Tensor bytes = (pixels * 0.5 + 0.5)
                               .clamp(0, 1)
                               .mul(255.0)
                               .round()
                               .to(at::kByte)
                               .squeeze(0)
                               .permute({1, 2, 3, 0})
                               .to(at::kCPU)
                               .contiguous();
  media::RgbFrames frames{
      static_cast<int>(bytes.size(0)), static_cast<int>(bytes.size(1)), static_cast<int>(bytes.size(2)), {}};
  const std::uint8_t* data = bytes.data_ptr<std::uint8_t>();
  frames.pixels.assign(data, data + bytes.numel());
  return frames;
}

Result<at::Tensor> encode_prefix(const WanVae& vae, const media::RgbFrames& frames, GenerationObserver& observer) {
  const at::Tensor pixels = to_pixels(frames);
  return encode_chunks(vae, n_latent_frames(pixels.size(2)), observer, [&](std::int64_t i) { return chunk_of(pixels, i); });
}

Result<at::Tensor> image_condition(const WanVae& vae, const at::Tensor& pixels, int n_frames, GenerationObserver& observer) {
  const std::int64_t n_given = n_latent_frames(pixels.size(2));
  const at::Tensor grey = at::zeros({1, 3, kTemporalScale, pixels.size(3), pixels.size(4)});
  MEROPE_ASSIGN_OR_RETURN(const at::Tensor latents,
                          encode_chunks(vae, n_latent_frames(n_frames), observer, [&](std::int64_t i) {
                            return i < n_given ? chunk_of(pixels, i) : grey;
                          }));
  at::Tensor mask = at::zeros({1, kTemporalScale, latents.size(2), latents.size(3), latents.size(4)}, latents.options());
  mask.narrow(2, 0, n_given).fill_(1);
  return at::cat({mask, latents}, 1);
}

}  // namespace merope::worker
