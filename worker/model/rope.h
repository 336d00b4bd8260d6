// Rotary position embedding over the token grid.
//
// A head of D channels is split into pairs of neighbours for (latent frame, row, column): rows and columns get 2*floor(D/6)
// channels each, frames the rest. Pair j of an axis of n channels turns by position * 10000^(-2j/n). Angles are computed in
// double precision and stored as fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace merope::worker {

// Sizes of the token grid; a token's index is (frame * rows + row) * columns + column.
struct TokenGrid {
  std::int64_t frames = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::int64_t n_tokens() const { return frames * rows * columns; }
};

// cos + i sin per token and pair: complex fp32 [S, D/2]. No axis may be longer than max_positions (throws c10::Error).
at::Tensor rope_table(const TokenGrid& grid, std::int64_t head_dim, std::int64_t max_positions, at::Device device);

// x: [B, S, heads, D]. Rotates every pair in fp32 and rounds once to x's dtype.
at::Tensor apply_rope(const at::Tensor& x, const at::Tensor& table);

}  // namespace merope::worker
