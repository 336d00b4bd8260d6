// The text rows that are only padding.
//
// The transformer attends to a fixed number of text rows; those after a prompt's end are zero, so all of them have the same
// key k and value v. c such rows add c exp(q k) to the denominator of the softmax and c exp(q k) v to its sum, which is what
// one row adds whose logit is raised by ln c.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

namespace merope::worker {

// What to add to the logits of a few rows that stand for `count` equal ones, count >= 1: exp of the results sums to count,
// to a millionth. One number for fp32; bf16 has no number near enough to ln c (for 500 rows it is off by 15 of them), so
// there it is up to four whose values are exact in bf16.
std::vector<double> padding_biases(std::int64_t count, at::ScalarType dtype);

}  // namespace merope::worker
