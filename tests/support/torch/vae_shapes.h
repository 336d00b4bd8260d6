// Names and shapes of an autoencoder's tensors, for filling one with hash weights.
#pragma once

#include "tests/support/torch/hash_weights.h"
#include "worker/model/vae/vae_config.h"

namespace merope::worker::test {

Shapes vae_shapes(const VaeConfig& config);

// The tiny autoencoders of the goldens: widths of 8 channels, one residual block per stage.
VaeConfig vae_config_v21();  // plain, 16 latent channels with the statistics of Wan 2.1
VaeConfig
vae_config_v22();  // residual, 48 latent channels, patches of 2 pixels, decoder 12 wide; mean 0.01 i - 0.2, std 0.5 + 0.02 i

// The same with mean 0 and deviation 1: latents go in and out as they are.
VaeConfig without_statistics(VaeConfig config);

}  // namespace merope::worker::test
