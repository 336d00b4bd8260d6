// What the transformer knows of the noise level.
//
// A job has few distinct timesteps, one per solver step and 0 for the tokens of a clean prefix. They are embedded together,
// in one product each with the large weights, and gathered per token where the modulation is applied. That equals embedding
// every token in every pass up to the rounding of the products.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/model/linear.h"
#include "worker/model/probe.h"

namespace merope::worker {

// n embedded timesteps.
struct TimeConditioning {
  at::Tensor embedding;   // [n, d], for the head
  at::Tensor projection;  // [n, 6, d], for the blocks

  // Only those that are listed, in that order.
  TimeConditioning rows(at::IntArrayRef indices) const;
};

// What one pass is told of the noise in its tokens. All samples of a batch share it.
struct NoiseLevel {
  TimeConditioning time;
  at::Tensor token_index;  // [S] int64 into the rows of `time`; undefined when all tokens have row 0
};

struct TimeEmbed {
  Linear linear_1;    // fp32, freq_dim -> d
  Linear linear_2;    // fp32, d -> d
  Linear projection;  // model dtype, d -> 6d

  // timesteps: [n], 1000 * sigma, 0 to 1000.
  TimeConditioning operator()(const at::Tensor& timesteps, const Probe& probe) const;
};

TimeEmbed read_time_embed(WeightReader& reader, const std::string& prefix, std::int64_t freq_dim, std::int64_t dim);

// [n] -> [n, width] fp32: cosines of t * 10000^(-2i/width), then the sines.
at::Tensor timestep_sinusoid(const at::Tensor& timesteps, std::int64_t width);

// rows: [n, ...]. Per token [1, S, ...], or [1, 1, ...] when all tokens have row 0 (token_index undefined).
at::Tensor per_token(const at::Tensor& rows, const at::Tensor& token_index);

}  // namespace merope::worker
