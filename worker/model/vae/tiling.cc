#include "worker/model/vae/tiling.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace merope::worker::vae {
namespace {

at::Tensor piece(const at::Tensor& x, std::int64_t axis, std::int64_t first, std::int64_t length) {
  return x.narrow(axis, first, std::min(length, x.size(axis) - first));
}

// `later` with its first `overlap` positions along `axis` mixed with the last ones of `earlier`.
at::Tensor blended(const at::Tensor& earlier, const at::Tensor& later, std::int64_t axis, std::int64_t overlap) {
  const std::int64_t n = std::min({overlap, earlier.size(axis), later.size(axis)});
  if (n == 0) {
    return later;
  }
  std::vector<std::int64_t> shape(static_cast<std::size_t>(later.dim()), 1);
  shape[static_cast<std::size_t>(axis)] = n;
  const at::Tensor weight = (at::arange(n, later.options()) / static_cast<double>(n)).view(shape);
  const at::Tensor mixed =
      earlier.narrow(axis, earlier.size(axis) - n, n) * (1 - weight) + later.narrow(axis, 0, n) * weight;
  return at::cat({mixed, later.narrow(axis, n, later.size(axis) - n)}, axis);
}

}  // namespace

TileGrid::TileGrid(std::int64_t height, std::int64_t width, const std::optional<VaeTiling>& tiling)
    : h(height), w(width), size(std::max(height, width)), stride(size), rows(1), columns(1) {
  if (!tiling) {
    return;
  }
  TORCH_CHECK(tiling->stride >= 1 && tiling->stride <= tiling->size,
              "tiles of ",
              tiling->size,
              " latent positions can not be ",
              tiling->stride,
              " apart");
  if (h > tiling->size || w > tiling->size) {
    size = tiling->size;
    stride = tiling->stride;
    rows = (h + stride - 1) / stride;
    columns = (w + stride - 1) / stride;
  }
}

at::Tensor through_tiles(const TileGrid& grid,
                         const at::Tensor& x,
                         std::int64_t in,
                         std::int64_t out,
                         const std::function<at::Tensor(std::size_t tile, const at::Tensor& part)>& run) {
  if (grid.count() == 1) {
    return run(0, x);
  }
  constexpr std::int64_t kRows = 3;  // axes of [B, C, T, H, W]
  constexpr std::int64_t kColumns = 4;
  const std::int64_t overlap = (grid.size - grid.stride) * out;
  const std::int64_t kept = grid.stride * out;
  std::vector<at::Tensor> above;
  std::vector<at::Tensor> joined_rows;
  for (std::int64_t i = 0; i < grid.rows; ++i) {
    const at::Tensor band = piece(x, kRows, i * grid.stride * in, grid.size * in);
    std::vector<at::Tensor> row;
    std::vector<at::Tensor> kept_row;
    for (std::int64_t j = 0; j < grid.columns; ++j) {
      const auto tile = static_cast<std::size_t>(i * grid.columns + j);
      at::Tensor result = run(tile, piece(band, kColumns, j * grid.stride * in, grid.size * in));
      if (i > 0) {
        result = blended(above[static_cast<std::size_t>(j)], result, kRows, overlap);
      }
      if (j > 0) {
        result = blended(row.back(), result, kColumns, overlap);
      }
      kept_row.push_back(piece(piece(result, kRows, 0, kept), kColumns, 0, kept));
      row.push_back(std::move(result));
    }
    joined_rows.push_back(at::cat(kept_row, kColumns));
    above = std::move(row);
  }
  return at::cat(joined_rows, kRows);
}

}  // namespace merope::worker::vae
