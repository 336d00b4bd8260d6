#include "worker/model/vae/vae_config.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/log.h"

namespace merope::worker {
namespace {

using nlohmann::json;

constexpr std::int64_t kLargest = 1 << 16;

// Reads keys of the file, remembers which are known and what is wrong. A key that is absent or null leaves the default.
class Keys {
 public:
  explicit Keys(const json& object) : object_(object) {}

  const json* find(const char* key) {
    known_.insert(key);
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  void positive(const char* key, std::int64_t& value) {
    if (const json* found = find(key)) {
      is_positive(*found) ? void(value = found->get<std::int64_t>()) : malformed(key, *found, "a positive integer");
    }
  }

  void boolean(const char* key, bool& value) {
    if (const json* found = find(key)) {
      found->is_boolean() ? void(value = found->get<bool>()) : malformed(key, *found, "true or false");
    }
  }

  template <typename T>
  void list(const char* key, std::vector<T>& values, bool (*accepts)(const json&), const char* wanted) {
    if (const json* found = find(key)) {
      if (!found->is_array() || found->empty() || !std::all_of(found->begin(), found->end(), accepts)) {
        return malformed(key, *found, wanted);
      }
      values = found->get<std::vector<T>>();
    }
  }

  void expect(const char* key, std::int64_t wanted) {
    if (const json* found = find(key); found != nullptr && *found != json(wanted)) {
      wrong(std::string(key) + " is " + found->dump() + " but the other keys make it " + std::to_string(wanted));
    }
  }

  void malformed(const char* key, const json& found, const char* wanted) {
    wrong(std::string(key) + " is " + found.dump() + ", which is not " + wanted);
  }
  void wrong(const std::string& sentence) { wrong_ += (wrong_.empty() ? "" : "; ") + sentence; }
  void unsupported(const std::string& sentence) { unsupported_ += (unsupported_.empty() ? "" : "; ") + sentence; }

  static bool is_positive(const json& value) {
    return value.is_number_integer() && value.get<std::int64_t>() > 0 && value.get<std::int64_t>() <= kLargest;
  }

  Status finish(const std::string& origin) const {
    for (const auto& [key, value] : object_.items()) {
      if (!known_.contains(key) && !key.starts_with('_')) {
        log::warn("unknown key in a model config ignored", {{"file", origin}, {"key", key}});
      }
    }
    if (!wrong_.empty()) {
      return Error{ErrorCode::kDataLoss, origin + ": " + wrong_ + (unsupported_.empty() ? "" : "; ") + unsupported_};
    }
    if (!unsupported_.empty()) {
      return Error{ErrorCode::kUnimplemented, origin + ": " + unsupported_};
    }
    return {};
  }

 private:
  const json& object_;
  std::set<std::string> known_;
  std::string wrong_;
  std::string unsupported_;
};

// The shortcuts of the residual kind move whole groups of channels; widths that do not divide can not be laid out. The plain
// kind halves the decoder's widths, rounding down.
void check_widths(const VaeConfig& config, Keys& keys) {
  const std::vector<std::int64_t>& mult = config.dim_mult;
  const auto factor = [&](std::size_t i) {  // positions that become channels between stages i and i + 1
    return i + 1 == mult.size() ? 1 : config.temporal_downsample[i] ? 8 : 4;
  };
  for (std::size_t i = 0; i < mult.size(); ++i) {
    if (!config.residual && config.decoder_base_dim * mult[i] < 2) {
      keys.wrong("a decoder width of 1 can not be halved");
    }
    const std::int64_t encoder_in = i == 0 ? 1 : mult[i - 1];
    const std::int64_t decoder_in = mult[std::min(i + 1, mult.size() - 1)];
    const bool decodes = i == 0 || (mult[i] * factor(i - 1)) % decoder_in == 0;
    if (config.residual && ((encoder_in * factor(i)) % mult[i] != 0 || !decodes)) {
      keys.wrong("stage " + std::to_string(i) + " of dim_mult does not divide into its shortcut");
    }
  }
}

void check_shape(const VaeConfig& config, Keys& keys) {
  if (config.temporal_downsample.size() + 1 != config.dim_mult.size()) {
    return keys.wrong("temperal_downsample has " + std::to_string(config.temporal_downsample.size()) +
                      " values, dim_mult makes it " + std::to_string(config.dim_mult.size() - 1));
  }
  if (std::count(config.temporal_downsample.begin(), config.temporal_downsample.end(), true) != 2) {
    keys.unsupported("temperal_downsample does not halve the frames twice, which alone is supported");
  }
  keys.expect("scale_factor_spatial", config.spatial_scale());
  keys.expect("scale_factor_temporal", kTemporalScale);
  keys.expect("in_channels", config.patched_channels());
  keys.expect("out_channels", config.patched_channels());
  check_widths(config, keys);
}

void check_statistics(const VaeConfig& config, Keys& keys) {
  const auto size = static_cast<std::size_t>(config.z_dim);
  for (const auto& [key, values] : {std::pair("latents_mean", &config.latents_mean), {"latents_std", &config.latents_std}}) {
    if (values->size() != size) {
      keys.wrong(std::string(key) + " has " + std::to_string(values->size()) + " values, z_dim is " +
                 std::to_string(config.z_dim));
    }
  }
  if (!std::all_of(config.latents_std.begin(), config.latents_std.end(), [](double value) { return value > 0; })) {
    keys.wrong("latents_std has a value that is not positive");
  }
}

}  // namespace

VaeConfig wan21_vae_config() {
  VaeConfig config;
  config.latents_mean = {-0.7571,
                         -0.7089,
                         -0.9113,
                         0.1075,
                         -0.1745,
                         0.9653,
                         -0.1517,
                         1.5508,
                         0.4134,
                         -0.0715,
                         0.5517,
                         -0.3632,
                         -0.1922,
                         -0.9497,
                         0.2503,
                         -0.2921};
  config.latents_std = {2.8184,
                        1.4541,
                        2.3275,
                        2.6558,
                        1.2196,
                        1.7708,
                        2.6052,
                        2.0743,
                        3.2687,
                        2.1526,
                        2.8652,
                        1.5579,
                        1.6382,
                        1.1253,
                        2.8251,
                        1.9160};
  return config;
}

Result<VaeConfig> parse_vae_config(std::string_view json_text, const std::string& origin) {
  const json object = json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return Error{ErrorCode::kDataLoss, origin + ": not a JSON object"};
  }
  VaeConfig config = wan21_vae_config();
  Keys keys(object);
  keys.positive("base_dim", config.base_dim);
  config.decoder_base_dim = config.base_dim;
  keys.positive("decoder_base_dim", config.decoder_base_dim);
  keys.positive("z_dim", config.z_dim);
  keys.list("dim_mult", config.dim_mult, &Keys::is_positive, "a list of positive integers");
  keys.positive("num_res_blocks", config.num_res_blocks);
  keys.list(
      "temperal_downsample",
      config.temporal_downsample,
      [](const json& value) { return value.is_boolean(); },
      "a list of true and false");
  keys.boolean("is_residual", config.residual);
  keys.positive("patch_size", config.patch_size);
  const auto is_number = [](const json& value) { return value.is_number() && std::isfinite(value.get<double>()); };
  keys.list("latents_mean", config.latents_mean, is_number, "a list of numbers");
  keys.list("latents_std", config.latents_std, is_number, "a list of numbers");
  if (const json* scales = keys.find("attn_scales"); scales != nullptr && !scales->empty()) {
    keys.unsupported("attn_scales is " + scales->dump() + ": attention inside the stages is not supported");
  }
  keys.find("dropout");      // training only
  keys.find("clip_output");  // the published code ignores it too
  check_shape(config, keys);
  check_statistics(config, keys);
  MEROPE_RETURN_IF_ERROR(keys.finish(origin));
  return config;
}

}  // namespace merope::worker
