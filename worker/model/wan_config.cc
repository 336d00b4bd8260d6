#include "worker/model/wan_config.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "core/base/log.h"

namespace merope::worker {
namespace {

using nlohmann::json;

// Reads keys of one object, remembers which were known, and throws a sentence that names the key.
class Keys {
 public:
  Keys(const json& object, std::string path) : object_(object), path_(std::move(path)) {}

  const json* find(const std::string& key) {
    known_.insert(key);
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  void positive(const std::string& key, std::int64_t& value) {
    if (const json* found = find(key)) {
      if (!found->is_number_integer() || found->get<std::int64_t>() <= 0 || found->get<std::int64_t>() > (1 << 24)) {
        throw Error{ErrorCode::kDataLoss, path_ + key + ": " + found->dump() + " is not a positive integer"};
      }
      value = found->get<std::int64_t>();
    }
  }

  std::vector<std::string> unknown() const {
    std::vector<std::string> names;
    for (const auto& [key, value] : object_.items()) {
      if (!known_.contains(key) && !key.starts_with('_')) {
        names.push_back(key);
      }
    }
    return names;
  }

 private:
  const json& object_;
  std::string path_;
  std::set<std::string> known_;
};

void require(bool condition, ErrorCode code, const std::string& message) {
  if (!condition) {
    throw Error{code, message};
  }
}

CameraBranchConfig parse_camera(const json& object, const WanConfig& wan, const std::string& path) {
  require(object.is_object(), ErrorCode::kDataLoss, path + " is not an object");
  CameraBranchConfig branch;
  Keys keys(object, path + ".");
  if (const json* name = keys.find("name")) {
    require(name->is_string(), ErrorCode::kDataLoss, path + ".name is not a string");
    branch.name = name->get<std::string>();
  }
  std::int64_t compression = 0;
  keys.positive("compression", compression);
  keys.positive("attention_head_dim", branch.head_dim);
  keys.positive("num_heads", branch.n_heads);
  if (branch.n_heads == 0) {
    require(compression > 0, ErrorCode::kDataLoss, path + " has neither num_heads nor compression");
    branch.n_heads = wan.dim() / (compression * branch.head_dim);
  }
  require(branch.n_heads > 0 && (compression == 0 || branch.width() * compression == wan.dim()),
          ErrorCode::kDataLoss,
          path + ".compression: " + std::to_string(compression) + " does not make " + std::to_string(branch.n_heads) +
              " heads of " + std::to_string(branch.head_dim) + " from a width of " + std::to_string(wan.dim()));
  if (const json* blocks = keys.find("injection_blocks")) {
    require(blocks->is_array(), ErrorCode::kDataLoss, path + ".injection_blocks is not an array");
    for (const json& block : *blocks) {
      require(block.is_number_integer() && block.get<std::int64_t>() >= 0 && block.get<std::int64_t>() < wan.n_layers &&
                  (branch.injection_blocks.empty() || block.get<std::int64_t>() > branch.injection_blocks.back()),
              ErrorCode::kDataLoss,
              path + ".injection_blocks: " + block.dump() + " is not an ascending block index below " +
                  std::to_string(wan.n_layers));
      branch.injection_blocks.push_back(block.get<int>());
    }
  } else {
    for (int block = 1; block < wan.n_layers; block += 2) {
      branch.injection_blocks.push_back(block);
    }
  }
  json settings = json::object();
  for (const std::string& key : keys.unknown()) {
    settings[key] = object.at(key);
  }
  const std::string path_colon = path + ": ";
  Result<camera::EncodingConfig> encoding = camera::encoding_config_from_json(settings.dump());
  require(encoding.has_value(), ErrorCode::kDataLoss, encoding ? "" : path_colon + encoding.error().message);
  if (!settings.contains("partition")) {
    const Result<camera::HeadPartition> partition = camera::default_head_partition(static_cast<int>(branch.head_dim));
    require(partition.has_value(), ErrorCode::kDataLoss, partition ? "" : path_colon + partition.error().message);
    encoding->partition = *partition;
  }
  const Status fits =
      camera::validate(encoding->partition, static_cast<int>(branch.head_dim), static_cast<int>(encoding->rho.size()));
  require(fits.has_value(), ErrorCode::kDataLoss, fits ? "" : path_colon + fits.error().message);
  branch.encoding = *std::move(encoding);
  return branch;
}

WanConfig parse(const json& object, const std::string& origin) {
  require(object.is_object(), ErrorCode::kDataLoss, origin + ": not a JSON object");
  WanConfig config;
  Keys keys(object, origin + ": ");
  if (const json* patch = keys.find("patch_size")) {
    require(*patch == json::array({1, kPatch, kPatch}),
            ErrorCode::kUnimplemented,
            origin + ": patch_size " + patch->dump() + " is not supported, only [1,2,2]");
  }
  for (const char* key : {"image_dim", "added_kv_proj_dim", "pos_embed_seq_len"}) {
    require(
        keys.find(key) == nullptr,
        ErrorCode::kUnimplemented,
        origin + ": " + key + " is set: this is Wan2.1-I2V, which has an image encoder and is recognised and not served");
  }
  if (const json* norm = keys.find("qk_norm")) {
    require(*norm == "rms_norm_across_heads",
            ErrorCode::kUnimplemented,
            origin + ": qk_norm " + norm->dump() + " is not supported, only \"rms_norm_across_heads\"");
  }
  keys.positive("num_attention_heads", config.n_heads);
  keys.positive("attention_head_dim", config.head_dim);
  keys.positive("in_channels", config.in_channels);
  config.out_channels = config.in_channels;
  keys.positive("out_channels", config.out_channels);
  keys.positive("text_dim", config.text_dim);
  keys.positive("freq_dim", config.freq_dim);
  keys.positive("ffn_dim", config.ffn_dim);
  keys.positive("num_layers", config.n_layers);
  keys.positive("rope_max_seq_len", config.rope_max_seq_len);
  if (const json* norm = keys.find("cross_attn_norm")) {
    require(norm->is_boolean(), ErrorCode::kDataLoss, origin + ": cross_attn_norm is not true or false");
    config.cross_attn_norm = norm->get<bool>();
  }
  if (const json* eps = keys.find("eps")) {
    require(eps->is_number() && eps->get<double>() > 0, ErrorCode::kDataLoss, origin + ": eps is not a positive number");
    config.eps = eps->get<double>();
  }
  require(config.head_dim % 2 == 0 && config.head_dim >= 6,
          ErrorCode::kDataLoss,
          origin + ": attention_head_dim: " + std::to_string(config.head_dim) +
              " can not be split into rotary pairs of three axes");
  require(
      config.freq_dim % 2 == 0, ErrorCode::kDataLoss, origin + ": freq_dim: " + std::to_string(config.freq_dim) + " is odd");
  if (const json* camera = keys.find("camera_encoding")) {
    config.camera = parse_camera(*camera, config, origin + ": camera_encoding");
  }
  for (const std::string& key : keys.unknown()) {
    log::warn("unknown key in a model config ignored", {{"file", origin}, {"key", key}});
  }
  return config;
}

}  // namespace

Result<WanConfig> parse_wan_config(std::string_view json_text, const std::string& origin) {
  try {
    return parse(json::parse(json_text), origin);
  } catch (const Error& error) {
    return error;
  } catch (const json::exception& exception) {
    return Error{ErrorCode::kDataLoss, origin + ": " + exception.what()};
  }
}

}  // namespace merope::worker
