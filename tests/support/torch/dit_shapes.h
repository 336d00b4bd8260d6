// Names and shapes of a transformer's tensors, for filling one with hash weights.
#pragma once

#include "tests/support/torch/hash_weights.h"
#include "worker/model/wan_config.h"

namespace merope::worker::test {

Shapes dit_shapes(const WanConfig& config);

// The tiny transformers of the goldens: 2 heads, 2 layers.
WanConfig dit_config_d1();  // heads of 12, 4 channels, text 16, ffn 32
WanConfig dit_config_d2();  // heads of 16, 48 channels, text 32, ffn 64
WanConfig dit_config_d3();  // as d2 with 16 channels

}  // namespace merope::worker::test
