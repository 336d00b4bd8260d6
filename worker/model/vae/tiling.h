// Passing a picture through the autoencoder in overlapping tiles, so that memory depends on the tile and not on the picture.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "worker/model/vae/causal_conv.h"

namespace merope::worker {

// In latent positions, so that every tile is whole in pixels too. A tile sees nothing of what is outside it, so the result
// differs from the untiled one; neighbours are blended where they overlap. Pictures of at most one tile are not cut.
struct VaeTiling {
  std::int64_t size = 16;
  std::int64_t stride = 12;  // at most `size`; the overlap is the difference
};

namespace vae {

// Tiles of a picture of h x w latent positions.
struct TileGrid {
  TileGrid(std::int64_t height, std::int64_t width, const std::optional<VaeTiling>& tiling);
  std::size_t count() const { return static_cast<std::size_t>(rows * columns); }

  std::int64_t h, w, size, stride, rows, columns;
};

// What a clip in the making is: its tiles and what each remembers. All chunks have the picture size of the first.
struct ClipState {
  ClipState(const TileGrid& tiles, const CacheSlots& slots) : grid(tiles), caches(tiles.count(), CausalCache(slots)) {}

  TileGrid grid;
  std::vector<CausalCache> caches;
};

// Calls `run(tile, part)` for every tile of x, row by row, and joins the results. One latent position is `in` positions of x
// and `out` positions of the results, in rows as in columns. In an overlap the weight of the later tile grows linearly from
// 0; first with the tile above, then with the one to the left, both of which are themselves blended.
at::Tensor through_tiles(const TileGrid& grid,
                         const at::Tensor& x,
                         std::int64_t in,
                         std::int64_t out,
                         const std::function<at::Tensor(std::size_t tile, const at::Tensor& part)>& run);

}  // namespace vae
}  // namespace merope::worker
