#include "worker/model/umt5/umt5_config.h"

#include <nlohmann/json.hpp>

namespace merope::worker {
namespace {

Error broken(const std::string& origin, const std::string& what) {
  return {ErrorCode::kDataLoss, origin + ": " + what};
}

// Overwrites `target` when the key is there; sizes outside 1..2^31-1 are refused.
Status read_size(const nlohmann::json& json, const char* key, const std::string& origin, std::int64_t& target) {
  const auto found = json.find(key);
  if (found == json.end()) {
    return {};
  }
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() < 1 || found->get<std::uint64_t>() > 0x7fffffffU) {
    return broken(origin, std::string(key) + " is " + found->dump() + ", not a size");
  }
  target = static_cast<std::int64_t>(found->get<std::uint64_t>());
  return {};
}

// The key must be absent or hold one of the supported values.
Status require(const nlohmann::json& json, const char* key, const std::string& origin, const nlohmann::json& supported) {
  const auto found = json.find(key);
  for (const nlohmann::json& value : supported) {
    if (found == json.end() || *found == value) {
      return {};
    }
  }
  return Error{ErrorCode::kUnimplemented,
               origin + ": " + key + " is " + found->dump() + "; this encoder supports " + supported.dump()};
}

}  // namespace

Result<Umt5Config> Umt5Config::parse(std::string_view text, const std::string& origin) {
  const nlohmann::json json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) {
    return broken(origin, "is not a JSON object");
  }
  MEROPE_RETURN_IF_ERROR(require(json, "model_type", origin, {"umt5"}));
  MEROPE_RETURN_IF_ERROR(require(json, "feed_forward_proj", origin, {"gated-gelu"}));
  MEROPE_RETURN_IF_ERROR(require(json, "dense_act_fn", origin, {"gelu_new", "gelu_pytorch_tanh"}));
  MEROPE_RETURN_IF_ERROR(require(json, "is_gated_act", origin, nlohmann::json::array({true})));

  Umt5Config config;
  MEROPE_RETURN_IF_ERROR(read_size(json, "vocab_size", origin, config.vocab_size));
  MEROPE_RETURN_IF_ERROR(read_size(json, "d_model", origin, config.d_model));
  MEROPE_RETURN_IF_ERROR(read_size(json, "d_kv", origin, config.d_kv));
  MEROPE_RETURN_IF_ERROR(read_size(json, "d_ff", origin, config.d_ff));
  MEROPE_RETURN_IF_ERROR(read_size(json, "num_layers", origin, config.n_layers));
  MEROPE_RETURN_IF_ERROR(read_size(json, "num_heads", origin, config.n_heads));
  MEROPE_RETURN_IF_ERROR(read_size(json, "relative_attention_num_buckets", origin, config.n_buckets));
  MEROPE_RETURN_IF_ERROR(read_size(json, "relative_attention_max_distance", origin, config.max_distance));
  if (const auto eps = json.find("layer_norm_epsilon"); eps != json.end()) {
    if (!eps->is_number() || !(eps->get<double>() > 0)) {
      return broken(origin, "layer_norm_epsilon is " + eps->dump() + ", not a positive number");
    }
    config.eps = eps->get<double>();
  }
  if (config.n_buckets < 4 || config.n_buckets % 4 != 0 || config.max_distance <= config.n_buckets / 4) {
    return broken(origin,
                  "relative_attention_num_buckets " + std::to_string(config.n_buckets) +
                      " must be a multiple of 4 and a quarter of it below relative_attention_max_distance " +
                      std::to_string(config.max_distance));
  }
  return config;
}

}  // namespace merope::worker
