#include "worker/pipeline/checkpoint.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/base/log.h"

namespace merope::worker {
namespace {

using nlohmann::json;

struct ComponentClasses {
  const char* component;
  std::vector<std::string> classes;
};

const std::vector<ComponentClasses>& supported_components() {
  static const std::vector<ComponentClasses> kComponents = {
      {"transformer", {"WanTransformer3DModel"}},
      {"vae", {"AutoencoderKLWan"}},
      {"text_encoder", {"UMT5EncoderModel"}},
      {"tokenizer", {"T5TokenizerFast", "T5Tokenizer"}},
      {"scheduler", scheduler_classes()},
  };
  return kComponents;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " or ") + word;
  }
  return text;
}

// A two-element array is a component; [null, null] is one that is not there.
bool is_component(const json& value) {
  return value.is_array() && value.size() == 2;
}
bool is_absent(const json& value) {
  return value.is_null() || (is_component(value) && value[0].is_null() && value[1].is_null());
}

Status check_index(const json& index, const std::string& origin) {
  const auto refuse = [&](const std::string& what) { return Error{ErrorCode::kUnimplemented, origin + ": " + what}; };
  if (!index.is_object()) {
    return Error{ErrorCode::kDataLoss, origin + ": not a JSON object"};
  }
  const std::string pipeline = index.value("_class_name", "");
  if (pipeline != "WanPipeline" && pipeline != "WanImageToVideoPipeline") {
    return refuse("_class_name '" + pipeline + "' is not supported, only WanPipeline and WanImageToVideoPipeline");
  }
  for (const auto& [key, value] : index.items()) {
    if (key.starts_with('_') || !is_component(value) || is_absent(value)) {
      continue;
    }
    const auto known = std::ranges::find_if(supported_components(), [&](const auto& c) { return key == c.component; });
    if (known == supported_components().end()) {
      return refuse("component " + key + " " + value.dump() + " is not supported" +
                    (key == "transformer_2" ? " (checkpoints of two experts)" : ""));
    }
    if (!value[1].is_string() || std::ranges::find(known->classes, value[1].get<std::string>()) == known->classes.end()) {
      return refuse("component " + key + " is a " + value[1].dump() + ", supported is " + joined(known->classes));
    }
  }
  for (const auto& [component, classes] : supported_components()) {
    if (!index.contains(component) || is_absent(index.at(component))) {
      return Error{ErrorCode::kDataLoss, origin + ": component " + component + " is missing"};
    }
  }
  if (index.contains("boundary_ratio") && index["boundary_ratio"].is_number()) {
    // Freshly converted Wan 2.1 models carry the number by mistake; without a second expert there is nothing to switch to.
    log::warn("boundary_ratio without a second transformer ignored", {{"file", origin}});
  }
  return {};
}

// Defaults of a request, as the publishers of the two models recommend them.
void set_defaults(ModelDescription& description, bool wan22) {
  description.architecture = wan22 ? "Wan2.2-TI2V" : "Wan2.1-T2V";
  description.default_width = wan22 ? 1280 : 832;
  description.default_height = wan22 ? 704 : 480;
  description.default_fps = wan22 ? 24 : 16;
  description.default_steps = 50;
  description.default_guidance_scale = 5.0;
}

Status read_own_settings(const json& index, ModelDescription& description, const std::string& origin) {
  const json own = index.value("_merope", json::object());
  try {
    description.name = own.value("name", description.name);
    description.trained = own.value("trained", true);
    description.default_width = own.value("width", description.default_width);
    description.default_height = own.value("height", description.default_height);
    description.default_fps = own.value("fps", description.default_fps);
    description.default_steps = own.value("steps", description.default_steps);
    description.default_guidance_scale = own.value("guidance_scale", description.default_guidance_scale);
  } catch (const json::exception& exception) {
    return Error{ErrorCode::kDataLoss, origin + ": _merope: " + exception.what()};
  }
  const int multiple = description.size_multiple;
  if (description.default_width <= 0 || description.default_width % multiple != 0 || description.default_height <= 0 ||
      description.default_height % multiple != 0) {
    return Error{ErrorCode::kDataLoss,
                 origin + ": _merope: a default size of " + std::to_string(description.default_width) + " x " +
                     std::to_string(description.default_height) + " is no multiple of " + std::to_string(multiple)};
  }
  return {};
}

// The folder's own name, also when it was given with a trailing slash.
std::string folder_name(const std::filesystem::path& folder) {
  const std::filesystem::path normal = std::filesystem::absolute(folder).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
}

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(path)) {
    return not_found(path.string() + ": no such file");
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<Checkpoint> read_checkpoint(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    return not_found(folder.string() + ": no such model folder");
  }
  const std::string origin = (folder / "model_index.json").string();
  MEROPE_ASSIGN_OR_RETURN(const std::string index_text, read_text_file(origin));
  const json index = json::parse(index_text, nullptr, /*allow_exceptions=*/false);
  MEROPE_RETURN_IF_ERROR(check_index(index, origin));

  Checkpoint checkpoint;
  checkpoint.folder = folder;
  const auto flag = index.find("expand_timesteps");
  checkpoint.expand_timesteps = flag != index.end() && flag->is_boolean() && flag->get<bool>();

  const std::string transformer = (folder / "transformer" / "config.json").string();
  MEROPE_ASSIGN_OR_RETURN(const std::string transformer_text, read_text_file(transformer));
  MEROPE_ASSIGN_OR_RETURN(checkpoint.transformer, parse_wan_config(transformer_text, transformer));
  const std::string vae = (folder / "vae" / "config.json").string();
  MEROPE_ASSIGN_OR_RETURN(const std::string vae_text, read_text_file(vae));
  MEROPE_ASSIGN_OR_RETURN(checkpoint.vae, parse_vae_config(vae_text, vae));
  const std::string scheduler = (folder / "scheduler" / "scheduler_config.json").string();
  MEROPE_ASSIGN_OR_RETURN(const std::string scheduler_text, read_text_file(scheduler));
  Result<SchedulerSettings> settings = parse_scheduler_config(scheduler_text);
  if (!settings) {
    return Error{ErrorCode::kUnimplemented, scheduler + ": " + settings.error().message};
  }
  checkpoint.scheduler = *settings;

  const WanConfig& dit = checkpoint.transformer;
  if (dit.in_channels != checkpoint.vae.z_dim || dit.out_channels != checkpoint.vae.z_dim) {
    return Error{ErrorCode::kDataLoss,
                 transformer + ": " + std::to_string(dit.in_channels) + " channels in and " +
                     std::to_string(dit.out_channels) + " out do not fit the " + std::to_string(checkpoint.vae.z_dim) +
                     " latent channels of " + vae};
  }
  ModelDescription& description = checkpoint.description;
  description.name = folder_name(folder);
  description.encodings = {dit.camera ? dit.camera->name : "merope"};
  description.size_multiple = static_cast<int>(checkpoint.vae.spatial_scale() * kPatch);
  description.default_shift = checkpoint.scheduler.shift;
  description.default_solver = checkpoint.scheduler.solver;
  set_defaults(description, checkpoint.vae.residual);
  MEROPE_RETURN_IF_ERROR(read_own_settings(index, description, origin));
  return checkpoint;
}

}  // namespace merope::worker
