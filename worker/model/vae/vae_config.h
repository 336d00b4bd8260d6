// The shape of a Wan video autoencoder as vae/config.json gives it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace merope::worker {

// The defaults are Wan 2.1's, which leaves most keys out. Wan 2.2 sets `residual` (shortcuts around the resampling stages),
// a patch of 2 pixels and a wider decoder.
struct VaeConfig {
  std::int64_t base_dim = 96;
  std::int64_t decoder_base_dim = 96;
  std::int64_t z_dim = 16;
  std::vector<std::int64_t> dim_mult = {1, 2, 4, 4};
  std::int64_t num_res_blocks = 2;
  std::vector<bool> temporal_downsample = {false, true, true};  // key "temperal_downsample"
  bool residual = false;                                        // key "is_residual"
  std::int64_t patch_size = 1;                                  // pixels that become channels, per side
  std::vector<double> latents_mean;                             // z_dim values
  std::vector<double> latents_std;                              // z_dim values, positive

  std::int64_t n_stages() const { return static_cast<std::int64_t>(dim_mult.size()); }
  std::int64_t patched_channels() const { return 3 * patch_size * patch_size; }
  // Pixels per latent position and side: 8 for Wan 2.1, 16 for Wan 2.2.
  std::int64_t spatial_scale() const { return patch_size << (n_stages() - 1); }
};

// RGB frames per latent frame after the first: two of the stages halve the frame count.
inline constexpr std::int64_t kTemporalScale = 4;

// The same config with the latent statistics that Wan 2.1 leaves out of its file.
VaeConfig wan21_vae_config();

// Reads the text of a config.json. kUnimplemented names what is not built (attention inside stages, another temporal scale),
// kDataLoss every value that can not be, all in one message. `origin` is the file, for messages.
Result<VaeConfig> parse_vae_config(std::string_view json_text, const std::string& origin);

}  // namespace merope::worker
