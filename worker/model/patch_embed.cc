#include "worker/model/patch_embed.h"

#include <ATen/ATen.h>

#include "worker/model/wan_config.h"

namespace merope::worker {

TokenGrid token_grid(const at::Tensor& latents) {
  TORCH_CHECK(latents.dim() == 5 && latents.size(3) % kPatch == 0 && latents.size(4) % kPatch == 0,
              "latents of shape ",
              latents.sizes(),
              " can not be cut into patches of 1 x 2 x 2");
  return {latents.size(2), latents.size(3) / kPatch, latents.size(4) / kPatch};
}

Linear read_patch_embedding(WeightReader& reader, const std::string& prefix, std::int64_t channels, std::int64_t dim) {
  const at::Tensor weight = reader.tensor(prefix + ".weight", {dim, channels, 1, kPatch, kPatch});
  return {weight.reshape({dim, channels * kPatch * kPatch}), reader.tensor(prefix + ".bias", {dim})};
}

at::Tensor patchify(const at::Tensor& latents) {
  const TokenGrid grid = token_grid(latents);
  const std::int64_t batch = latents.size(0);
  const std::int64_t channels = latents.size(1);
  return latents.view({batch, channels, grid.frames, grid.rows, kPatch, grid.columns, kPatch})
      .permute({0, 2, 3, 5, 1, 4, 6})
      .reshape({batch, grid.n_tokens(), channels * kPatch * kPatch});
}

at::Tensor unpatchify(const at::Tensor& tokens, const TokenGrid& grid) {
  const std::int64_t batch = tokens.size(0);
  const std::int64_t channels = tokens.size(2) / (kPatch * kPatch);
  return tokens.view({batch, grid.frames, grid.rows, grid.columns, kPatch, kPatch, channels})
      .permute({0, 6, 1, 2, 4, 3, 5})
      .reshape({batch, channels, grid.frames, grid.rows * kPatch, grid.columns * kPatch});
}

}  // namespace merope::worker
