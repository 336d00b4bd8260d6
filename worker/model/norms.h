// The two normalisations of the transformer. Both compute in fp32 whatever the dtype of their input.
#pragma once

#include <ATen/core/Tensor.h>

namespace merope::worker {

// (x - mean) / sqrt(variance + eps) over the last axis, biased variance, no affine part. Returns fp32.
at::Tensor layer_norm(const at::Tensor& x, double eps);

// The same with fp32 weight and bias [d]; returns x's dtype.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps);

// x / sqrt(mean(x^2) + eps) * weight over the last axis, rounded once to x's dtype.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

// layer_norm(x) * (1 + scale) + shift in fp32, rounded once to x's dtype. scale, shift: fp32, broadcast to x.
at::Tensor modulated_layer_norm(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale, double eps);

}  // namespace merope::worker
