// Convolutions of the video autoencoder, and the memory that lets a clip pass through them a few frames at a time.
//
// Videos are [B, C, T, H, W], laid out in memory with the channels last ("channels_last_3d"): then one frame's pixels are
// rows of a matrix, folding frames into the batch copies nothing, and joining frames in time is one block copy.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "worker/model/weight_source.h"

namespace merope::worker::vae {

// Gives every convolution that looks back in time its place in a CausalCache, while the model is built.
class CacheSlots {
 public:
  int take() { return count_++; }
  int count() const { return count_; }

 private:
  int count_ = 0;
};

// What one pass over a clip remembers: per convolution the last frames of its input. Its size is fixed after two chunks.
// Used by one thread at a time.
class CausalCache {
 public:
  explicit CausalCache(const CacheSlots& slots) : history_(static_cast<std::size_t>(slots.count())) {}

  // The frames before the present chunk; undefined stands for zeros.
  at::Tensor& operator[](int slot) { return history_[static_cast<std::size_t>(slot)]; }

  // The first chunk is one frame, and the temporal resampling passes it on unchanged.
  bool first_chunk() const { return first_chunk_; }
  void chunk_done() { first_chunk_ = false; }

  std::int64_t bytes() const;

 private:
  std::vector<at::Tensor> history_;
  bool first_chunk_ = true;
};

// Convolution over kt frames and kh x kw pixels, stride 1: every output frame sees itself and the kt - 1 before it (from the
// cache, zeros before the clip), and the picture is padded with zeros to keep its size.
class CausalConv3d {
 public:
  CausalConv3d(WeightReader& reader,
               CacheSlots& slots,
               const std::string& prefix,
               std::int64_t in,
               std::int64_t out,
               at::IntArrayRef kernel);
  at::Tensor operator()(const at::Tensor& x, CausalCache& cache) const;

 private:
  at::Tensor weight_;  // [out, in, kt, kh, kw]
  at::Tensor bias_;
  int slot_;
};

// The last n frames of history and x together, zeros where the clip has no frame that early. Owns its memory, so that
// nothing larger stays alive.
at::Tensor last_frames(const at::Tensor& history, const at::Tensor& x, std::int64_t n);

// 1x1x1 convolution: a matrix product over the channels.
struct PointwiseConv {
  PointwiseConv(
      WeightReader& reader, const std::string& prefix, std::int64_t in, std::int64_t out, at::IntArrayRef shape_tail);
  at::Tensor operator()(const at::Tensor& x) const;  // [B, C, T, H, W]

  at::Tensor weight;  // [out, in]
  at::Tensor bias;
};

// [B, C, T, H, W] -> [B T, C, H, W] and back; copies nothing when the channels are last and B is 1.
at::Tensor fold_frames(const at::Tensor& x);
at::Tensor unfold_frames(const at::Tensor& x, std::int64_t batch);

}  // namespace merope::worker::vae
