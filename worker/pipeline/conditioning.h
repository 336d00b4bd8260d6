// The known beginning of a clip: pictures to clean latents; and pixels as tensors.
//
// A prefix of 1, 5, 9, ... frames makes 1, 2, 3, ... latent frames, which are exactly the first latent frames of the whole
// clip, since the autoencoder is causal. They stay clean while the others are denoised.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/base/result.h"
#include "core/media/rgb_frames.h"
#include "worker/engine.h"
#include "worker/model/vae/wan_vae.h"

namespace merope::worker {

// Bytes to [1, 3, F, H, W] fp32 in [-1, 1], and back: rounded to the nearest byte, ties to even.
at::Tensor to_pixels(const media::RgbFrames& frames);
media::RgbFrames to_rgb_frames(const at::Tensor& pixels);

// frames: 4n+1 of them, one or more. Returns normalised latents [1, z_dim, n+1, h, w] fp32. Asks observer.may_continue()
// before every latent frame and reports it as a step of Stage::kEncode.
Result<at::Tensor> encode_prefix(const WanVae& vae, const media::RgbFrames& frames, GenerationObserver& observer);

// What a model with extra input channels sees of its first frames, [1, 4 + z_dim, f, h, w] fp32: four channels that are 1
// where an RGB frame of the latent frame is given and 0 elsewhere (the first latent frame has one RGB frame, which stands
// for all four), then the normalised latents of the clip whose other frames are middle grey. pixels: [1, 3, 4n+1, H, W] of
// the n_frames of the clip. Asks and reports as encode_prefix does, for every latent frame of the clip.
Result<at::Tensor> image_condition(const WanVae& vae, const at::Tensor& pixels, int n_frames, GenerationObserver& observer);

}  // namespace merope::worker
