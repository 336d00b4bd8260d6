#include "worker/pipeline/checkpoint.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

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
      {"transformer_2", {"WanTransformer3DModel"}},
      {"vae", {"AutoencoderKLWan"}},
      {"text_encoder", {"UMT5EncoderModel"}},
      {"tokenizer", {"T5TokenizerFast", "T5Tokenizer"}},
      {"scheduler", scheduler_classes()},
  };
  return kComponents;
}

// Models that are known by name, so that the refusal can say what it is.
struct KnownModel {
  const char* class_name;  // of a pipeline or a component
  const char* model;
};
constexpr KnownModel kNotServed[] = {
    {"WanVACEPipeline", "Wan VACE"},
    {"WanVACETransformer3DModel", "Wan VACE"},
    {"WanAnimatePipeline", "Wan2.2-Animate"},
    {"WanAnimateTransformer3DModel", "Wan2.2-Animate"},
    {"WanSpeechToVideoPipeline", "Wan2.2-S2V"},
    {"WanS2VTransformer3DModel", "Wan2.2-S2V"},
    {"WanVideoToVideoPipeline", "the video-to-video pipeline of Wan2.1"},
    {"CLIPVisionModel", "Wan2.1-I2V, which has an image encoder"},
    {"CLIPVisionModelWithProjection", "Wan2.1-I2V, which has an image encoder"},
};

// ": this is Wan VACE, which is not served", or nothing.
std::string known_as(const json& class_name) {
  for (const KnownModel& known : kNotServed) {
    if (class_name == known.class_name) {
      return std::string(": this is ") + known.model + ", which is recognised and not served";
    }
  }
  return "";
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

bool has_component(const json& index, const char* name) {
  return index.contains(name) && !is_absent(index.at(name));
}

Status check_index(const json& index, const std::string& origin) {
  const auto refuse = [&](const std::string& what) { return Error{ErrorCode::kUnimplemented, origin + ": " + what}; };
  if (!index.is_object()) {
    return Error{ErrorCode::kDataLoss, origin + ": not a JSON object"};
  }
  const json pipeline = index.value("_class_name", json());
  if (pipeline != "WanPipeline" && pipeline != "WanImageToVideoPipeline") {
    return refuse("_class_name " + pipeline.dump() + " is not supported, only WanPipeline and WanImageToVideoPipeline" +
                  known_as(pipeline));
  }
  for (const auto& [key, value] : index.items()) {
    // The processor resizes the pictures for the encoder; here they come in the clip's size.
    if (key.starts_with('_') || !is_component(value) || is_absent(value) || key == "image_processor") {
      continue;
    }
    const auto known = std::ranges::find_if(supported_components(), [&](const auto& c) { return key == c.component; });
    if (known == supported_components().end()) {
      return refuse("component " + key + " " + value.dump() + " is not supported" + known_as(value[1]));
    }
    if (!value[1].is_string() || std::ranges::find(known->classes, value[1].get<std::string>()) == known->classes.end()) {
      return refuse("component " + key + " is a " + value[1].dump() + ", supported is " + joined(known->classes) +
                    known_as(value[1]));
    }
  }
  for (const auto& [component, classes] : supported_components()) {
    if (component != std::string_view("transformer_2") && !has_component(index, component)) {
      return Error{ErrorCode::kDataLoss, origin + ": component " + component + " is missing"};
    }
  }
  return {};
}

// How the channels of transformers and autoencoder fit together says how a model takes pictures.
Result<Conditioning> conditioning_of(const Checkpoint& checkpoint, bool expand_timesteps) {
  const std::int64_t z = checkpoint.vae.z_dim;
  std::vector<bool> with_image;
  for (const TransformerPart& part : checkpoint.transformers) {
    const WanConfig& dit = part.config;
    with_image.push_back(dit.in_channels == kTemporalScale + 2 * z);
    if (dit.out_channels != z || (dit.in_channels != z && !with_image.back())) {
      return Error{ErrorCode::kDataLoss,
                   (part.files / "config.json").string() + ": " + std::to_string(dit.in_channels) + " channels in and " +
                       std::to_string(dit.out_channels) + " out do not fit the " + std::to_string(z) +
                       " latent channels of " + (checkpoint.folder / "vae" / "config.json").string() +
                       " (a Wan of another kind, or the autoencoder of another Wan)"};
    }
  }
  if (with_image.front() != with_image.back()) {
    return Error{ErrorCode::kDataLoss, checkpoint.folder.string() + ": only one of the two transformers takes an image"};
  }
  return with_image.front() ? Conditioning::kInputChannels
         : expand_timesteps ? Conditioning::kCleanPrefix
                            : Conditioning::kNone;
}

std::string encoding_of(const Checkpoint& checkpoint) {
  for (const TransformerPart& part : checkpoint.transformers) {
    if (part.config.camera) {
      return part.config.camera->name;
    }
  }
  return "merope";
}

// Defaults of a request, as the publishers of each family recommend them.
struct Family {
  const char* architecture;
  int width, height, fps, steps;
  double guidance_scale;
};
constexpr Family kTextToVideo = {"Wan2.1-T2V", 832, 480, 16, 50, 5.0};
constexpr Family kTextImageToVideo = {"Wan2.2-TI2V", 1280, 704, 24, 50, 5.0};
constexpr Family kTextToVideoExperts = {"Wan2.2-T2V-A14B", 1280, 720, 16, 40, 4.0};
constexpr Family kImageToVideoExperts = {"Wan2.2-I2V-A14B", 1280, 720, 16, 40, 3.5};

const Family& family_of(const Checkpoint& checkpoint) {
  if (checkpoint.conditioning == Conditioning::kInputChannels) {
    return kImageToVideoExperts;
  }
  if (checkpoint.transformers.size() == 2) {
    return kTextToVideoExperts;
  }
  return checkpoint.vae.residual ? kTextImageToVideo : kTextToVideo;
}

void set_defaults(ModelDescription& description, const Checkpoint& checkpoint) {
  const Family& family = family_of(checkpoint);
  description.architecture = family.architecture;
  description.default_width = family.width;
  description.default_height = family.height;
  description.default_fps = family.fps;
  description.default_steps = family.steps;
  description.default_guidance_scale = family.guidance_scale;
}

// The fraction of the training timesteps from which on the first transformer works; nothing for a model of one.
Result<std::optional<double>> read_boundary(const json& index, const std::string& origin) {
  const json value = index.value("boundary_ratio", json());
  if (!has_component(index, "transformer_2")) {
    if (value.is_number()) {
      // Freshly converted Wan 2.1 models carry the number by mistake; without a second expert there is nothing to switch to.
      log::warn("boundary_ratio without a second transformer ignored", {{"file", origin}});
    }
    return std::optional<double>();
  }
  if (!value.is_number() || value.get<double>() <= 0 || value.get<double>() >= 1) {
    return Error{ErrorCode::kDataLoss,
                 origin + ": boundary_ratio is " + value.dump() +
                     ", but with transformer_2 it must be between 0 and 1 to say where that takes over"};
  }
  return std::optional(value.get<double>());
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
  MEROPE_ASSIGN_OR_RETURN(const std::optional<double> boundary, read_boundary(index, origin));
  checkpoint.boundary_ratio = boundary.value_or(0);
  for (const char* name : {"transformer", "transformer_2"}) {
    if (has_component(index, name)) {
      const std::filesystem::path files = folder / name;
      const std::string config = (files / "config.json").string();
      MEROPE_ASSIGN_OR_RETURN(const std::string config_text, read_text_file(config));
      MEROPE_ASSIGN_OR_RETURN(WanConfig transformer, parse_wan_config(config_text, config));
      checkpoint.transformers.push_back({std::move(transformer), files});
    }
  }
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

  const auto flag = index.find("expand_timesteps");
  const bool expand_timesteps = flag != index.end() && flag->is_boolean() && flag->get<bool>();
  MEROPE_ASSIGN_OR_RETURN(checkpoint.conditioning, conditioning_of(checkpoint, expand_timesteps));
  ModelDescription& description = checkpoint.description;
  description.name = folder_name(folder);
  description.encodings = {encoding_of(checkpoint)};
  description.size_multiple = static_cast<int>(checkpoint.vae.spatial_scale() * kPatch);
  description.default_shift = checkpoint.scheduler.shift;
  description.default_solver = checkpoint.scheduler.solver;
  set_defaults(description, checkpoint);
  MEROPE_RETURN_IF_ERROR(read_own_settings(index, description, origin));
  return checkpoint;
}

}  // namespace merope::worker
