// The shape of a Wan transformer as transformer/config.json gives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/camera/encoding/encoding_config.h"

namespace merope::worker {

// The camera branch of a checkpoint: object "camera_encoding" of transformer/config.json. Stock Wan has none.
struct CameraBranchConfig {
  std::string name = "merope";
  std::int64_t n_heads = 0;
  std::int64_t head_dim = 128;
  std::vector<int> injection_blocks;  // zero-based, ascending
  camera::EncodingConfig encoding;    // the other keys of the object ("min_baseline_m", "partition", ...)

  std::int64_t width() const { return n_heads * head_dim; }
};

// Defaults are those of the field's code for a key that a checkpoint leaves out; older checkpoints leave out newer keys.
struct WanConfig {
  std::int64_t n_heads = 40;
  std::int64_t head_dim = 128;
  std::int64_t in_channels = 16;
  std::int64_t out_channels = 16;
  std::int64_t text_dim = 4096;
  std::int64_t freq_dim = 256;
  std::int64_t ffn_dim = 13824;
  std::int64_t n_layers = 40;
  std::int64_t rope_max_seq_len = 1024;
  bool cross_attn_norm = true;
  double eps = 1e-6;
  std::optional<CameraBranchConfig> camera;

  std::int64_t dim() const { return n_heads * head_dim; }
};

// Patches are always 1 x 2 x 2 (frames, rows, columns of the latent); another patch_size is refused.
inline constexpr std::int64_t kPatch = 2;

// Reads the text of a config.json. kUnimplemented names what this code does not build (image branch, other patches);
// kDataLoss names a value that can not be. `origin` is the file, for messages and for the warning about unknown keys.
Result<WanConfig> parse_wan_config(std::string_view json_text, const std::string& origin);

}  // namespace merope::worker
