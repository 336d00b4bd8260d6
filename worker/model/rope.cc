#include "worker/model/rope.h"

#include <ATen/ATen.h>

namespace merope::worker {
namespace {

// [n_positions, channels / 2] angles in double precision.
at::Tensor axis_angles(std::int64_t n_positions, std::int64_t channels) {
  const at::Tensor exponent = at::arange(0, channels, 2, at::kDouble) / static_cast<double>(channels);
  return at::outer(at::arange(n_positions, at::kDouble), at::pow(10000.0, -exponent));
}

}  // namespace

at::Tensor rope_table(const TokenGrid& grid, std::int64_t head_dim, std::int64_t max_positions, at::Device device) {
  TORCH_CHECK(grid.frames <= max_positions && grid.rows <= max_positions && grid.columns <= max_positions,
              "a token grid of ",
              grid.frames,
              " x ",
              grid.rows,
              " x ",
              grid.columns,
              " is beyond the model's ",
              max_positions,
              " positions");
  const std::int64_t spatial = 2 * (head_dim / 6);
  const std::int64_t temporal = head_dim - 2 * spatial;
  const auto on_grid = [&](const at::Tensor& angles, at::IntArrayRef view) {
    return angles.view(view).expand({grid.frames, grid.rows, grid.columns, angles.size(-1)});
  };
  const at::Tensor angles = at::cat({on_grid(axis_angles(grid.frames, temporal), {grid.frames, 1, 1, temporal / 2}),
                                     on_grid(axis_angles(grid.rows, spatial), {1, grid.rows, 1, spatial / 2}),
                                     on_grid(axis_angles(grid.columns, spatial), {1, 1, grid.columns, spatial / 2})},
                                    -1)
                                .view({grid.n_tokens(), head_dim / 2});
  return at::complex(angles.cos().to(at::kFloat), angles.sin().to(at::kFloat)).to(device);
}

at::Tensor apply_rope(const at::Tensor& x, const at::Tensor& table) {
  const at::Tensor pairs = at::view_as_complex(x.to(at::kFloat).contiguous().unflatten(-1, {x.size(-1) / 2, 2}));
  return at::view_as_real(pairs * table.unsqueeze(1)).flatten(-2).to(x.scalar_type());
}

}  // namespace merope::worker
