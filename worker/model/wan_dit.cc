#include "worker/model/wan_dit.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "worker/model/norms.h"
#include "worker/model/text_padding.h"

namespace merope::worker {

Result<WanDit> WanDit::load(const WanConfig& config, const WeightSource& weights, at::Device device, at::ScalarType dtype) {
  WeightReader reader(weights, device, dtype);
  WanDit model(config, reader);
  MEROPE_RETURN_IF_ERROR(reader.finish());
  return model;
}

WanDit::WanDit(const WanConfig& config, WeightReader& reader)
    : config_(config), device_(reader.device()), dtype_(reader.dtype()) {
  const std::int64_t d = config.dim();
  patch_embedding_ = read_patch_embedding(reader, "patch_embedding", config.in_channels, d);
  time_embed_ = read_time_embed(reader, "condition_embedder", config.freq_dim, d);
  text_linear_1_ = read_linear(reader, "condition_embedder.text_embedder.linear_1", config.text_dim, d);
  text_linear_2_ = read_linear(reader, "condition_embedder.text_embedder.linear_2", d, d);
  for (std::int64_t i = 0; i < config.n_layers; ++i) {
    const bool with_camera =
        config.camera && std::ranges::binary_search(config.camera->injection_blocks, static_cast<int>(i));
    blocks_.push_back(read_dit_block(reader, "blocks." + std::to_string(i), config, with_camera));
    // Some checkpoints carry the norm of an image branch that is not there.
    reader.ignore("blocks." + std::to_string(i) + ".attn2.norm_added_q.weight");
  }
  head_table_ = reader.tensor("scale_shift_table", {1, 2, d}, at::kFloat);
  proj_out_ = read_linear(reader, "proj_out", d, kPatch * kPatch * config.out_channels);
}

TextContext WanDit::encode_text(const at::Tensor& states, std::int64_t padded_length, const Probe& probe) const {
  at::Tensor rows = states.to(device_, dtype_);
  const std::int64_t n_rows = rows.size(1);
  TextContext context;
  if (n_rows < padded_length) {
    const std::vector<double> biases = padding_biases(padded_length - n_rows, dtype_);
    const auto n_padding = static_cast<std::int64_t>(biases.size());
    rows = at::constant_pad_nd(rows, {0, 0, 0, n_padding});
    context.bias = at::cat({at::zeros({n_rows}, at::kDouble), at::tensor(biases, at::kDouble)})
                       .to(device_, dtype_)
                       .view({1, 1, 1, n_rows + n_padding});
  }
  const at::Tensor text = text_linear_2_(at::gelu(text_linear_1_(rows), "tanh"));
  probe("text", text);
  for (const DitBlock& block : blocks_) {
    context.blocks.push_back(block.attn2.encode(text));
  }
  return context;
}

TextContext TextContext::prompt(std::int64_t i) const {
  TextContext one{{}, bias};
  for (const TextKeyValue& block : blocks) {
    one.blocks.push_back({block.k.narrow(0, i, 1), block.v.narrow(0, i, 1)});
  }
  return one;
}

TimeConditioning WanDit::embed_timesteps(const at::Tensor& timesteps, const Probe& probe) const {
  return time_embed_(timesteps.to(device_), probe.part("time"));
}

at::Tensor WanDit::rope(const TokenGrid& grid) const {
  return rope_table(grid, config_.head_dim, config_.rope_max_seq_len, device_);
}

at::Tensor WanDit::forward(const at::Tensor& latents,
                           const NoiseLevel& noise,
                           const TextContext& text,
                           const at::Tensor& rope,
                           const CameraAttention* camera,
                           const Probe& probe) const {
  const TokenGrid grid = token_grid(latents);
  at::Tensor x = patch_embedding_(patchify(latents.to(device_, dtype_)));
  probe("tokens", x);
  const BlockContext context{&noise, rope, camera};
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    x = blocks_[i](x, context, text.blocks[i], text.bias, probe.part("blocks." + std::to_string(i)));
  }
  const at::Tensor rows = head_table_ + noise.time.embedding.to(at::kFloat).unsqueeze(1);  // [n, 2, d]
  if (probe) {
    probe("norm_out", layer_norm(x, config_.eps));
  }
  const at::Tensor head_input = modulated_layer_norm(
      x, per_token(rows.select(1, 0), noise.token_index), per_token(rows.select(1, 1), noise.token_index), config_.eps);
  const at::Tensor tokens = proj_out_(head_input);
  probe("proj_out", tokens);
  return unpatchify(tokens, grid);
}

}  // namespace merope::worker
