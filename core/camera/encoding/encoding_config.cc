#include "core/camera/encoding/encoding_config.h"

#include <array>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "core/camera/internal/number_text.h"

namespace merope::camera {
namespace {

using Json = nlohmann::ordered_json;
using internal::shortest;

// Names of enumerators, in their order.
constexpr std::array<std::string_view, 2> names_of(PairLayout) {
  return {"adjacent", "split_half"};
}
constexpr std::array<std::string_view, 2> names_of(NativeOrder) {
  return {"time_x_y", "time_y_x"};
}
constexpr std::array<std::string_view, 2> names_of(NativeFrequencies) {
  return {"sub_band", "backbone_prefix"};
}
constexpr std::array<std::string_view, 1> names_of(PoseOfLatent) {
  return {"last_frame"};
}
constexpr std::array<std::string_view, 2> names_of(PoleFallback) {
  return {"half_turn_about_y", "half_turn_about_x"};
}
constexpr std::array<std::string_view, 2> names_of(TokenCentre) {
  return {"middle", "corner"};
}
constexpr std::array<std::string_view, 2> names_of(InvalidRayPolicy) {
  return {"clamp", "forward"};
}

// Every key once: `fields(key, member)` is called for each, by the reader and by the writer.
template <typename Partition, typename Fields>
void visit_partition(Partition& p, Fields&& field) {
  field("disparity", p.disparity);
  field("rotation", p.rotation);
  field("translation", p.translation);
  field("native_time", p.native_time);
  field("native_x", p.native_x);
  field("native_y", p.native_y);
}

template <typename Config, typename Fields>
void visit_config(Config& c, Fields&& field) {
  field("partition", c.partition);
  field("rho", c.rho);
  field("min_wavelength_m", c.min_wavelength_m);
  field("max_wavelength_m", c.max_wavelength_m);
  field("pair_layout", c.pair_layout);
  field("native_order", c.native_order);
  field("native_frequencies", c.native_frequencies);
  field("native_base", c.native_base);
  field("backbone_head_dim", c.backbone_head_dim);
  field("min_baseline_m", c.min_baseline_m);
  field("eps_parallel", c.eps_parallel);
  field("eps_pole", c.pole.eps);
  field("pole_fallback", c.pole.fallback);
  field("token_centre", c.token_centre);
  field("invalid_ray_policy", c.invalid_ray_policy);
  field("pose_of_latent", c.pose_of_latent);
  field("disparity_on", c.disparity_on);
  field("rotation_on", c.rotation_on);
  field("translation_on", c.translation_on);
  field("native_on", c.native_on);
}

std::string wrong(const std::string& path, const Json& value, const std::string& expected) {
  return path + ": " + value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 64) + " is not " + expected;
}

// Reads the keys of one object; the first problem stays in `problem`.
class Reader {
 public:
  Reader(const Json& object, std::string prefix, std::string& problem)
      : object_(object), prefix_(std::move(prefix)), problem_(problem) {}

  template <typename T>
  void operator()(const char* key, T& member) {
    known_.insert(key);
    const auto it = object_.find(key);
    if (it != object_.end() && problem_.empty()) {
      read(prefix_ + key, *it, member);
    }
  }

  void refuse_unknown_keys() {
    for (const auto& item : object_.items()) {
      if (problem_.empty() && !known_.contains(item.key())) {
        problem_ = prefix_ + item.key().substr(0, 64) + ": is not a known key";
      }
    }
  }

 private:
  void read(const std::string& path, const Json& value, bool& member) {
    value.is_boolean() ? void(member = value.get<bool>()) : fail(wrong(path, value, "true or false"));
  }
  void read(const std::string& path, const Json& value, double& member) {
    value.is_number() ? void(member = value.get<double>()) : fail(wrong(path, value, "a number"));
  }
  void read(const std::string& path, const Json& value, int& member) {
    double number = 0.5;
    if (value.is_number()) {
      number = value.get<double>();
    }
    number == std::floor(number) && std::abs(number) <= 1e9 ? void(member = static_cast<int>(number))
                                                            : fail(wrong(path, value, "a whole number in range"));
  }
  void read(const std::string& path, const Json& value, std::vector<double>& member) {
    if (!value.is_array()) {
      return fail(wrong(path, value, "an array of numbers"));
    }
    member.assign(value.size(), 0.0);
    for (std::size_t i = 0; i < value.size() && problem_.empty(); ++i) {
      read(path + "[" + std::to_string(i) + "]", value[i], member[i]);
    }
  }
  void read(const std::string& path, const Json& value, HeadPartition& member) {
    if (!value.is_object()) {
      return fail(wrong(path, value, "an object"));
    }
    Reader reader(value, path + ".", problem_);
    visit_partition(member, reader);
    reader.refuse_unknown_keys();
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void read(const std::string& path, const Json& value, Enum& member) {
    std::string known;
    std::size_t i = 0;
    for (const std::string_view name : names_of(Enum{})) {
      if (value.is_string() && value.get_ref<const std::string&>() == name) {
        member = static_cast<Enum>(i);
        return;
      }
      known += (i++ == 0 ? "" : ", ") + std::string(name);
    }
    fail(wrong(path, value, "one of " + known));
  }
  void fail(std::string problem) { problem_ = std::move(problem); }

  const Json& object_;
  std::string prefix_;
  std::string& problem_;
  std::set<std::string> known_;
};

class Writer {
 public:
  explicit Writer(Json& object) : object_(object) {}

  template <typename T>
  void operator()(const char* key, const T& member) {
    if constexpr (std::is_enum_v<T>) {
      object_[key] = names_of(member)[static_cast<std::size_t>(member)];
    } else if constexpr (std::is_same_v<T, HeadPartition>) {
      Writer writer(object_[key]);
      visit_partition(member, writer);
    } else {
      object_[key] = member;
    }
  }

 private:
  Json& object_;
};

Error bad_value(const char* key, double value, const std::string& what) {
  return invalid_argument(std::string(key) + ": " + shortest(value) + " " + what);
}

}  // namespace

Status validate(const EncodingConfig& config) {
  MEROPE_RETURN_IF_ERROR(validate(config.partition, config.partition.head_dim(), static_cast<int>(config.rho.size())));
  if (config.partition.head_dim() == 0) {
    return invalid_argument("partition: has no channels");
  }
  for (std::size_t i = 0; i < config.rho.size(); ++i) {
    const std::string key = "rho[" + std::to_string(i) + "]";
    if (!(config.rho[i] >= 0 && config.rho[i] <= 1)) {
      return bad_value(key.c_str(), config.rho[i], "is not in 0 to 1");
    }
    if (i > 0 && config.rho[i] <= config.rho[i - 1]) {
      return bad_value(key.c_str(), config.rho[i], "is not above the one before it");
    }
  }
  if (!std::isfinite(config.min_wavelength_m) || config.min_wavelength_m <= 0) {
    return bad_value("min_wavelength_m", config.min_wavelength_m, "is not positive");
  }
  if (!std::isfinite(config.max_wavelength_m) || config.max_wavelength_m < config.min_wavelength_m) {
    return bad_value("max_wavelength_m", config.max_wavelength_m, "is below min_wavelength_m");
  }
  if (!std::isfinite(config.native_base) || config.native_base <= 1) {
    return bad_value("native_base", config.native_base, "is not above 1");
  }
  if (config.backbone_head_dim < 6) {
    return bad_value("backbone_head_dim", config.backbone_head_dim, "is below 6");
  }
  if (!std::isfinite(config.min_baseline_m) || config.min_baseline_m <= 0) {
    return bad_value("min_baseline_m", config.min_baseline_m, "is not positive");
  }
  if (!(config.eps_parallel > 0 && config.eps_parallel < 1)) {
    return bad_value("eps_parallel", config.eps_parallel, "is not between 0 and 1");
  }
  if (!(config.pole.eps > 0 && config.pole.eps < 1)) {
    return bad_value("eps_pole", config.pole.eps, "is not between 0 and 1");
  }
  return {};
}

Result<EncodingConfig> encoding_config_from_json(std::string_view text) {
  EncodingConfig config;
  std::string problem;
  try {
    const Json document = Json::parse(text);
    if (!document.is_object()) {
      return invalid_argument("the encoding's configuration is not a JSON object");
    }
    Reader reader(document, "", problem);
    visit_config(config, reader);
    reader.refuse_unknown_keys();
  } catch (const Json::exception& e) {
    return invalid_argument(e.what());
  }
  if (!problem.empty()) {
    return invalid_argument(problem);
  }
  MEROPE_RETURN_IF_ERROR(validate(config));
  return config;
}

std::string to_json(const EncodingConfig& config) {
  Json document;
  Writer writer(document);
  visit_config(config, writer);
  return document.dump(2);
}

}  // namespace merope::camera
