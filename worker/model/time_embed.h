// What the transformer knows of the noise level.
//
// A clip has few distinct timesteps: 0 for the tokens of the clean prefix, t for the others. They are embedded once each and
// gathered per token where the modulation is applied, which equals embedding every token up to the rounding of the products.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/model/linear.h"
#include "worker/model/probe.h"

namespace merope::worker {

// Timesteps are 1000 * sigma, 0 to 1000. All samples of a batch share them.
struct Timesteps {
  at::Tensor values;       // [n] fp32
  at::Tensor token_index;  // [S] int64 into values; undefined when all tokens have values[0]
};

struct TimeConditioning {
  at::Tensor embedding;   // [n, d], for the head
  at::Tensor projection;  // [n, 6, d], for the blocks
};

struct TimeEmbed {
  Linear linear_1;    // fp32, freq_dim -> d
  Linear linear_2;    // fp32, d -> d
  Linear projection;  // model dtype, d -> 6d

  TimeConditioning operator()(const Timesteps& timesteps, const Probe& probe) const;
};

TimeEmbed read_time_embed(WeightReader& reader, const std::string& prefix, std::int64_t freq_dim, std::int64_t dim);

// [n] -> [n, width] fp32: cosines of t * 10000^(-2i/width), then the sines.
at::Tensor timestep_sinusoid(const at::Tensor& timesteps, std::int64_t width);

// rows: [n, ...]. Per token [1, S, ...], or [1, 1, ...] when all tokens have the same timestep.
at::Tensor per_token(const at::Tensor& rows, const Timesteps& timesteps);

}  // namespace merope::worker
