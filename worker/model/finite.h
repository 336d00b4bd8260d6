// Whether weights are numbers.
#pragma once

#include <ATen/core/Tensor.h>

namespace merope::worker {

// No NaN and no infinity. On the CPU, of any dtype. Reads every value once and allocates nothing, which a sum in ATen does
// not promise: it converts its input first.
bool all_finite(const at::Tensor& tensor);

}  // namespace merope::worker
