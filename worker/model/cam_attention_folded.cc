#include "worker/model/cam_attention_folded.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace merope::worker {
namespace {

using camera::PairLayout;

at::Tensor table(const std::vector<float>& values, at::IntArrayRef shape, at::Device device) {
  TORCH_CHECK(static_cast<std::int64_t>(values.size()) == c10::multiply_integers(shape),
              "an encoding table holds ",
              values.size(),
              " numbers where shape ",
              shape,
              " is expected");
  return at::empty(shape, at::kFloat).copy_(at::from_blob(const_cast<float*>(values.data()), shape, at::kFloat)).to(device);
}

// Turns the pairs of the last axis (n channels) by angles whose cos and sin [..., n/2] broadcast to it.
at::Tensor rotate_pairs(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, PairLayout layout) {
  const std::int64_t n_pairs = x.size(-1) / 2;
  const bool adjacent = layout == PairLayout::kAdjacent;
  const at::Tensor pairs = adjacent ? x.unflatten(-1, {n_pairs, 2}) : x.unflatten(-1, {2, n_pairs});
  const std::int64_t part_axis = adjacent ? -1 : -2;
  const at::Tensor first = pairs.select(part_axis, 0);
  const at::Tensor second = pairs.select(part_axis, 1);
  return at::stack({first * cos - second * sin, first * sin + second * cos}, part_axis).flatten(-2);
}

// x: [..., 3 * n] as triplets; frame: [..., 3, 3], broadcast to x's leading axes. Every triplet becomes frame * triplet. As
// scaled sums of the frame's columns: a batch of millions of 3 x 3 products is slow on any device.
at::Tensor turn_triplets(const at::Tensor& x, const at::Tensor& frame) {
  const at::Tensor rows = x.unflatten(-1, {x.size(-1) / 3, 3});
  const auto column = [&](std::int64_t axis) { return frame.select(-1, axis).unsqueeze(-2); };
  const at::Tensor first_two = at::addcmul(rows.narrow(-1, 0, 1) * column(0), rows.narrow(-1, 1, 1), column(1));
  return at::addcmul(first_two, rows.narrow(-1, 2, 1), column(2)).flatten(-2);
}

struct Bands {
  at::Tensor disparity, rotation, translation, native;

  Bands(const at::Tensor& x, const camera::HeadPartition& p)
      : disparity(x.narrow(-1, 0, p.disparity)),
        rotation(x.narrow(-1, p.disparity, p.rotation)),
        translation(x.narrow(-1, p.disparity + p.rotation, p.translation)),
        native(x.narrow(-1, p.disparity + p.rotation + p.translation, p.native())) {}

  at::Tensor joined() const { return at::cat({disparity, rotation, translation, native}, -1); }
};

}  // namespace

FoldedCameraAttention::FoldedCameraAttention(const camera::EncodingTables& tables,
                                             at::Device device,
                                             std::size_t expanded_bytes)
    : config_(tables.config), camera_begin_(tables.camera_begin), expanded_bytes_(expanded_bytes) {
  const std::int64_t n = tables.n_tokens;
  const std::int64_t c = tables.n_cameras;
  const camera::HeadPartition& p = config_.partition;
  rho_ = table(tables.rho, {static_cast<std::int64_t>(tables.rho.size())}, device);
  token_frame_ = table(tables.token_frame, {n, 3, 3}, device);
  ray_frame_ = table(tables.ray_frame, {n, 3, 3}, device);
  native_cos_ = table(tables.native_cos, {n, p.native() / 2}, device);
  native_sin_ = table(tables.native_sin, {n, p.native() / 2}, device);
  trans_cos_ = table(tables.trans_cos, {c, c, 3, p.n_wavelengths()}, device);
  trans_sin_ = table(tables.trans_sin, {c, c, 3, p.n_wavelengths()}, device);
  arcs_ = table(tables.arcs, {c, n, camera::EncodingTables::kArcSize}, device);
  const camera::Vec3 diagonal = camera::pole_diagonal(config_.pole.fallback);
  pole_frame_ = at::diag(at::tensor({diagonal.x(), diagonal.y(), diagonal.z()}, at::kFloat)).to(device);
}

at::Tensor FoldedCameraAttention::rotate_native(const at::Tensor& x, double direction) const {
  const camera::HeadPartition& p = config_.partition;
  const int first_axis = config_.native_order == camera::NativeOrder::kTimeXY ? p.native_x : p.native_y;
  std::vector<at::Tensor> turned;
  std::int64_t at_channel = 0;
  for (const std::int64_t width : {p.native_time, first_axis, p.native_x + p.native_y - first_axis}) {
    const auto angles = [&](const at::Tensor& all) { return all.narrow(-1, at_channel / 2, width / 2).unsqueeze(1); };
    turned.push_back(rotate_pairs(
        x.narrow(-1, at_channel, width), angles(native_cos_), angles(native_sin_) * direction, config_.pair_layout));
    at_channel += width;
  }
  return at::cat(turned, -1);
}

at::Tensor FoldedCameraAttention::query_side(const at::Tensor& q) const {
  Bands bands(q, config_.partition);
  if (config_.disparity_on) {
    bands.disparity = turn_triplets(bands.disparity, token_frame_.unsqueeze(1));
  }
  if (config_.rotation_on) {
    bands.rotation = turn_triplets(bands.rotation, ray_frame_.unsqueeze(1));
  }
  if (config_.native_on) {
    bands.native = rotate_native(bands.native, 1);
  }
  return bands.joined();
}

at::Tensor FoldedCameraAttention::output_side(const at::Tensor& o) const {
  Bands bands(o, config_.partition);
  if (config_.disparity_on) {
    bands.disparity = turn_triplets(bands.disparity, token_frame_.transpose(1, 2).unsqueeze(1));
  }
  if (config_.rotation_on) {
    bands.rotation = turn_triplets(bands.rotation, ray_frame_.transpose(1, 2).unsqueeze(1));
  }
  if (config_.native_on) {
    bands.native = rotate_native(bands.native, -1);
  }
  return bands.joined();
}

at::Tensor FoldedCameraAttention::key_side(const at::Tensor& kv) const {
  Bands bands(kv, config_.partition);
  if (config_.rotation_on) {
    bands.rotation = turn_triplets(bands.rotation, ray_frame_.unsqueeze(1));
  }
  if (config_.native_on) {
    bands.native = rotate_native(bands.native, 1);
  }
  return bands.joined();
}

// [end - begin, N, anchors, 3, 3]: the frame of the ray-local axes at each anchor, in the form that is stable near -e_z.
at::Tensor FoldedCameraAttention::anchor_frames(std::int64_t begin, std::int64_t end) const {
  const at::Tensor arcs = arcs_.slice(0, begin, end);
  const at::Tensor angle = (arcs.select(-1, 6).unsqueeze(-1) * rho_).unsqueeze(-1);  // [G, N, L, 1]
  const at::Tensor direction =
      angle.cos() * arcs.narrow(-1, 0, 3).unsqueeze(-2) + angle.sin() * arcs.narrow(-1, 3, 3).unsqueeze(-2);
  const at::Tensor x = direction.select(-1, 0);
  const at::Tensor y = direction.select(-1, 1);
  const at::Tensor c = direction.select(-1, 2);
  const at::Tensor s2 = x * x + y * y;
  const at::Tensor at_pole = (c < 0).logical_and(s2 <= config_.pole.eps);
  const at::Tensor in_front = c >= 0;
  const at::Tensor one = at::ones_like(c);
  const at::Tensor k = at::where(in_front, one / at::where(in_front, 1 + c, one), (1 - c) / at::where(s2 > 0, s2, one));
  const at::Tensor frames =
      at::stack({1 - x * x * k, -x * y * k, x, -x * y * k, 1 - y * y * k, y, -x, -y, c}, -1).unflatten(-1, {3, 3});
  return at::where(at_pole.unsqueeze(-1).unsqueeze(-1), pole_frame_, frames);
}

at::Tensor FoldedCameraAttention::seen_from(const at::Tensor& kv, std::int64_t begin, std::int64_t end) const {
  const std::int64_t n_query_cameras = end - begin;
  Bands bands(kv.unsqueeze(1).expand({-1, n_query_cameras, -1, -1, -1}), config_.partition);  // [B, G, N, heads, .]
  if (config_.disparity_on) {
    const std::int64_t n_anchors = rho_.size(0);
    const at::Tensor by_anchor = bands.disparity.unflatten(-1, {n_anchors, bands.disparity.size(-1) / n_anchors});
    // [G, N, 1, anchors, 3, 3] against [B, G, N, heads, anchors, copies, 3].
    bands.disparity = turn_triplets(by_anchor, anchor_frames(begin, end).unsqueeze(2)).flatten(-2);
  }
  if (config_.translation_on) {
    std::vector<at::Tensor> by_camera;
    const at::Tensor by_axis = bands.translation.unflatten(-1, {3, bands.translation.size(-1) / 3});
    for (std::size_t j = 0; j + 1 < camera_begin_.size(); ++j) {
      const auto angles = [&](const at::Tensor& all) {  // [G, 1, 1, 3, wavelengths]
        return all.slice(0, begin, end).select(1, static_cast<std::int64_t>(j)).unsqueeze(1).unsqueeze(1);
      };
      by_camera.push_back(rotate_pairs(by_axis.slice(2, camera_begin_[j], camera_begin_[j + 1]),
                                       angles(trans_cos_),
                                       angles(trans_sin_),
                                       config_.pair_layout)
                              .flatten(-2));
    }
    bands.translation = at::cat(by_camera, 2);
  }
  return bands.joined();
}

at::Tensor FoldedCameraAttention::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const {
  const std::int64_t batch = q.size(0);
  const std::int64_t n_tokens = q.size(1);
  const auto n_cameras = static_cast<std::int64_t>(camera_begin_.size()) - 1;
  TORCH_CHECK(n_tokens == camera_begin_.back() && q.size(3) == config_.partition.head_dim(),
              "camera attention over ",
              q.sizes(),
              " with tables for ",
              camera_begin_.back(),
              " tokens and heads of ",
              config_.partition.head_dim());
  const at::Tensor queries = query_side(q.to(at::kFloat)).to(q.scalar_type());
  const at::Tensor keys = key_side(k.to(at::kFloat));
  const at::Tensor values = key_side(v.to(at::kFloat));
  const std::int64_t bytes_per_camera = 2 * keys.numel() * static_cast<std::int64_t>(keys.element_size());
  const std::int64_t most = std::max<std::int64_t>(1, static_cast<std::int64_t>(expanded_bytes_) / bytes_per_camera);

  std::vector<at::Tensor> outputs;
  for (std::int64_t begin = 0; begin < n_cameras;) {
    // Cameras of one chunk have the same number of tokens, so that they can share a batch.
    const auto tokens_of = [&](std::int64_t i) { return camera_begin_[i + 1] - camera_begin_[i]; };
    std::int64_t end = begin + 1;
    while (end < n_cameras && end - begin < most && tokens_of(end) == tokens_of(begin)) {
      ++end;
    }
    const auto fold = [&](const at::Tensor& x) { return x.flatten(0, 1).transpose(1, 2); };  // [B * G, heads, ., D]
    const at::Tensor rows =
        queries.slice(1, camera_begin_[begin], camera_begin_[end]).unflatten(1, {end - begin, tokens_of(begin)});
    const at::Tensor attended = at::scaled_dot_product_attention(fold(rows),
                                                                 fold(seen_from(keys, begin, end).to(q.scalar_type())),
                                                                 fold(seen_from(values, begin, end).to(q.scalar_type())));
    outputs.push_back(attended.transpose(1, 2).unflatten(0, {batch, end - begin}).flatten(1, 2));
    begin = end;
  }
  return output_side(at::cat(outputs, 1).to(at::kFloat)).to(q.scalar_type());
}

}  // namespace merope::worker
