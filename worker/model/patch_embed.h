// Latents to tokens and back. A token is one 1 x 2 x 2 patch; token order is frame, row, column.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/model/linear.h"
#include "worker/model/rope.h"

namespace merope::worker {

// latents: [B, C, f, h, w], h and w even.
TokenGrid token_grid(const at::Tensor& latents);

// `prefix`.weight [dim, C, 1, 2, 2] and bias, as the equal dense layer over (channel, dy, dx).
Linear read_patch_embedding(WeightReader& reader, const std::string& prefix, std::int64_t channels, std::int64_t dim);

// [B, C, f, h, w] -> [B, S, 4C], channel slowest within a token.
at::Tensor patchify(const at::Tensor& latents);

// [B, S, 4C] -> [B, C, f, h, w]; here the channel is the FASTEST within a token: (dy, dx, channel).
at::Tensor unpatchify(const at::Tensor& tokens, const TokenGrid& grid);

}  // namespace merope::worker
