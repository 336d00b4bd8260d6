#include "tests/support/torch/dit_shapes.h"

#include <algorithm>

namespace merope::worker::test {
namespace {

void add_linear(Shapes& shapes, const std::string& prefix, std::int64_t in, std::int64_t out) {
  shapes[prefix + ".weight"] = {out, in};
  shapes[prefix + ".bias"] = {out};
}

}  // namespace

Shapes dit_shapes(const WanConfig& config) {
  const std::int64_t d = config.dim();
  Shapes shapes;
  shapes["patch_embedding.weight"] = {d, config.in_channels, 1, kPatch, kPatch};
  shapes["patch_embedding.bias"] = {d};
  add_linear(shapes, "condition_embedder.time_embedder.linear_1", config.freq_dim, d);
  add_linear(shapes, "condition_embedder.time_embedder.linear_2", d, d);
  add_linear(shapes, "condition_embedder.time_proj", d, 6 * d);
  add_linear(shapes, "condition_embedder.text_embedder.linear_1", config.text_dim, d);
  add_linear(shapes, "condition_embedder.text_embedder.linear_2", d, d);
  shapes["scale_shift_table"] = {1, 2, d};
  add_linear(shapes, "proj_out", d, kPatch * kPatch * config.out_channels);
  for (std::int64_t i = 0; i < config.n_layers; ++i) {
    const std::string block = "blocks." + std::to_string(i);
    shapes[block + ".scale_shift_table"] = {1, 6, d};
    for (const char* attention : {".attn1", ".attn2"}) {
      for (const char* layer : {".to_q", ".to_k", ".to_v", ".to_out.0"}) {
        add_linear(shapes, block + attention + layer, d, d);
      }
      shapes[block + attention + ".norm_q.weight"] = {d};
      shapes[block + attention + ".norm_k.weight"] = {d};
    }
    if (config.cross_attn_norm) {
      shapes[block + ".norm2.weight"] = {d};
      shapes[block + ".norm2.bias"] = {d};
    }
    add_linear(shapes, block + ".ffn.net.0.proj", d, config.ffn_dim);
    add_linear(shapes, block + ".ffn.net.2", config.ffn_dim, d);
    if (config.camera && std::ranges::binary_search(config.camera->injection_blocks, static_cast<int>(i))) {
      const std::int64_t a = config.camera->width();
      for (const char* layer : {".to_q", ".to_k", ".to_v"}) {
        add_linear(shapes, block + ".cam_attn" + layer, d, a);
      }
      add_linear(shapes, block + ".cam_attn.to_out", a, d);
    }
  }
  return shapes;
}

WanConfig dit_config_d1() {
  WanConfig config;
  config.n_heads = 2;
  config.head_dim = 12;
  config.in_channels = config.out_channels = 4;
  config.text_dim = 16;
  config.ffn_dim = 32;
  config.n_layers = 2;
  config.rope_max_seq_len = 32;
  return config;
}

WanConfig dit_config_d2() {
  WanConfig config = dit_config_d1();
  config.head_dim = 16;
  config.in_channels = config.out_channels = 48;
  config.text_dim = 32;
  config.ffn_dim = 64;
  config.rope_max_seq_len = 64;
  return config;
}

WanConfig dit_config_d3() {
  WanConfig config = dit_config_d2();
  config.in_channels = config.out_channels = 16;
  return config;
}

}  // namespace merope::worker::test
