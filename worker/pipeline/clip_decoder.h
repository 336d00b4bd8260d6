// From the latents of a clip to its frames, handed on while later ones are still to be decoded.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/base/result.h"
#include "core/media/rgb_frames.h"
#include "worker/engine.h"
#include "worker/model/vae/wan_vae.h"

namespace merope::worker {

// latents: normalised, [1, z_dim, n+1, h, w], decoded from the first latent frame on: a decoder that starts in the middle
// has lost what its convolutions remember. Frames go to observer.frames() one latent frame at a time (1, then 4 each); in
// place of the reconstruction of the conditioning frames go those themselves. Asks observer.may_continue() before every
// latent frame and reports it as a step of Stage::kDecode. Returns the number of frames.
Result<int> decode_clip(const WanVae& vae,
                        const at::Tensor& latents,
                        const media::RgbFrames& conditioning,
                        GenerationObserver& observer);

}  // namespace merope::worker
