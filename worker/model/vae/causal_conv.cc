#include "worker/model/vae/causal_conv.h"

#include <ATen/ATen.h>

namespace merope::worker::vae {
namespace {

std::vector<std::int64_t> weight_shape(std::int64_t out, std::int64_t in, at::IntArrayRef kernel) {
  std::vector<std::int64_t> shape = {out, in};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return shape;
}

}  // namespace

std::int64_t CausalCache::bytes() const {
  std::int64_t sum = 0;
  for (const at::Tensor& frames : history_) {
    sum += frames.defined() ? static_cast<std::int64_t>(frames.storage().nbytes()) : 0;
  }
  return sum;
}

at::Tensor last_frames(const at::Tensor& history, const at::Tensor& x, std::int64_t n) {
  const std::int64_t frames = x.size(2);
  if (frames >= n) {
    return x.narrow(2, frames - n, n).clone();
  }
  const std::int64_t older = n - frames;
  if (!history.defined()) {
    std::vector<std::int64_t> sizes = x.sizes().vec();
    sizes[2] = older;
    return at::cat({at::zeros(sizes, x.options()).contiguous(at::MemoryFormat::ChannelsLast3d), x}, 2);
  }
  return at::cat({history.narrow(2, history.size(2) - older, older), x}, 2);
}

CausalConv3d::CausalConv3d(WeightReader& reader,
                           CacheSlots& slots,
                           const std::string& prefix,
                           std::int64_t in,
                           std::int64_t out,
                           at::IntArrayRef kernel)
    : weight_(reader.tensor(prefix + ".weight", weight_shape(out, in, kernel)).contiguous(at::MemoryFormat::ChannelsLast3d)),
      bias_(reader.tensor(prefix + ".bias", {out})),
      slot_(slots.take()) {}

at::Tensor CausalConv3d::operator()(const at::Tensor& x, CausalCache& cache) const {
  at::Tensor& history = cache[slot_];
  const std::int64_t taps = weight_.size(2);
  const at::Tensor before = history;
  history = last_frames(before, x, taps - 1);
  const auto conv = [&](const at::Tensor& input, const at::Tensor& weight) {
    // Small inputs go through an implementation that forgets the layout.
    return at::conv3d(input, weight, bias_, 1, {0, weight.size(3) / 2, weight.size(4) / 2})
        .contiguous(at::MemoryFormat::ChannelsLast3d);
  };
  if (before.defined()) {
    return conv(at::cat({before, x}, 2), weight_);
  }
  if (x.size(2) == 1) {
    // Nothing but zeros came before: only the last tap counts, a third of the work.
    return conv(x, weight_.narrow(2, taps - 1, 1));
  }
  return conv(at::constant_pad_nd(x, {0, 0, 0, 0, taps - 1, 0}), weight_);
}

PointwiseConv::PointwiseConv(
    WeightReader& reader, const std::string& prefix, std::int64_t in, std::int64_t out, at::IntArrayRef shape_tail)
    : weight(reader.tensor(prefix + ".weight", weight_shape(out, in, shape_tail)).reshape({out, in})),
      bias(reader.tensor(prefix + ".bias", {out})) {}

at::Tensor PointwiseConv::operator()(const at::Tensor& x) const {
  return at::linear(x.permute({0, 2, 3, 4, 1}), weight, bias).permute({0, 4, 1, 2, 3});
}

at::Tensor fold_frames(const at::Tensor& x) {
  return x.transpose(1, 2).reshape({x.size(0) * x.size(2), x.size(1), x.size(3), x.size(4)});
}

at::Tensor unfold_frames(const at::Tensor& x, std::int64_t batch) {
  return x.reshape({batch, x.size(0) / batch, x.size(1), x.size(2), x.size(3)}).transpose(1, 2);
}

}  // namespace merope::worker::vae
