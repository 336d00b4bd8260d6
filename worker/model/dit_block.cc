#include "worker/model/dit_block.h"

#include <ATen/ATen.h>

#include "worker/model/norms.h"

namespace merope::worker {
namespace {

// x + update * gate, product and sum in fp32.
at::Tensor gated_sum(const at::Tensor& x, const at::Tensor& update, const at::Tensor& gate) {
  return at::addcmul(x.to(at::kFloat), update.to(at::kFloat), gate).to(x.scalar_type());
}

}  // namespace

at::Tensor FeedForward::operator()(const at::Tensor& x) const {
  return out(at::gelu(in(x), "tanh"));
}

at::Tensor DitBlock::operator()(const at::Tensor& x,
                                const BlockContext& context,
                                const TextKeyValue& text,
                                const at::Tensor& text_bias,
                                const Probe& probe) const {
  const at::Tensor rows = scale_shift_table + context.noise->time.projection.to(at::kFloat);  // [n, 6, d]
  const auto modulation = [&](std::int64_t row) { return per_token(rows.select(1, row), context.noise->token_index); };

  const at::Tensor attention_input = modulated_layer_norm(x, modulation(0), modulation(1), eps);
  at::Tensor attended = attn1(attention_input, context.rope, probe.part("attn1"));
  if (cam_attn && context.camera != nullptr) {
    attended = attended + (*cam_attn)(attention_input, *context.camera, probe.part("cam_attn"));
  }
  at::Tensor y = gated_sum(x, attended, modulation(2));

  y = y +
      attn2(norm2_weight.defined() ? layer_norm(y, norm2_weight, norm2_bias, eps) : y, text, text_bias, probe.part("attn2"));

  const at::Tensor fed = ffn(modulated_layer_norm(y, modulation(3), modulation(4), eps));
  probe("ffn", fed);
  y = gated_sum(y, fed, modulation(5));
  probe("out", y);
  return y;
}

DitBlock read_dit_block(WeightReader& reader, const std::string& prefix, const WanConfig& config, bool with_camera) {
  const std::int64_t d = config.dim();
  DitBlock block;
  block.scale_shift_table = reader.tensor(prefix + ".scale_shift_table", {1, 6, d}, at::kFloat);
  block.attn1 = read_self_attention(reader, prefix + ".attn1", config);
  if (config.cross_attn_norm) {
    block.norm2_weight = reader.tensor(prefix + ".norm2.weight", {d}, at::kFloat);
    block.norm2_bias = reader.tensor(prefix + ".norm2.bias", {d}, at::kFloat);
  }
  block.attn2 = read_cross_attention(reader, prefix + ".attn2", config);
  block.ffn = {read_linear(reader, prefix + ".ffn.net.0.proj", d, config.ffn_dim),
               read_linear(reader, prefix + ".ffn.net.2", config.ffn_dim, d)};
  if (with_camera) {
    block.cam_attn = read_cam_branch(reader, prefix + ".cam_attn", d, *config.camera);
  }
  block.eps = config.eps;
  return block;
}

}  // namespace merope::worker
