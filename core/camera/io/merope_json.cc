#include "core/camera/io/merope_json.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/camera/internal/number_text.h"
#include "core/camera/pose_conventions.h"

namespace merope::camera {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormatName = "merope-trajectory";
constexpr int kVersion = 1;

Error bad_field(const std::string& field, const std::string& what) {
  return invalid_fields({{field, what}});
}

// "lens" + "width" = "lens.width"; the root has no name.
std::string member(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

// The names of a value's kind that a reader of JSON knows.
std::string kind_of(const Json& value) {
  return value.type_name();
}

Status require_object(const Json& value, const std::string& path, std::initializer_list<std::string_view> keys) {
  if (!value.is_object()) {
    return bad_field(path.empty() ? "file" : path, kind_of(value) + " where an object is expected");
  }
  for (const auto& item : value.items()) {
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end()) {
      return bad_field(member(path, item.key().substr(0, 64)), "is not a known key");
    }
  }
  return {};
}

Result<double> number_at(const Json& value, const std::string& path) {
  if (!value.is_number()) {
    return bad_field(path, kind_of(value) + " where a number is expected");
  }
  return value.get<double>();
}

Result<const Json*> required(const Json& object, const std::string& path, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) {
    return bad_field(member(path, key), "is missing");
  }
  return &*it;
}

Result<int> whole_number(const Json& object, const std::string& path, const char* key) {
  MEROPE_ASSIGN_OR_RETURN(const Json* value, required(object, path, key));
  MEROPE_ASSIGN_OR_RETURN(const double number, number_at(*value, member(path, key)));
  if (number != std::floor(number) || std::abs(number) > 1e9) {
    return bad_field(member(path, key), internal::shortest(number) + " is not a whole number in range");
  }
  return static_cast<int>(number);
}

// The place of a text among the names of an enumeration.
template <typename Enum, std::size_t kSize>
Result<Enum> one_of(const Json& object, const char* key, const std::array<std::string_view, kSize>& names) {
  MEROPE_ASSIGN_OR_RETURN(const Json* value, required(object, "", key));
  std::string known;
  for (std::size_t i = 0; i < kSize; ++i) {
    if (value->is_string() && value->get_ref<const std::string&>() == names[i]) {
      return static_cast<Enum>(i);
    }
    known += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  return bad_field(key,
                   value->dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 64) + " is not one of " + known);
}

template <typename Model>
Result<Model> parse_model(const Json& object, const std::string& path) {
  if (!object.is_object()) {
    return bad_field(path, kind_of(object) + " where an object is expected");
  }
  Model model;
  for (const auto& parameter : Model::parameters()) {
    const std::string name(parameter.name);
    MEROPE_ASSIGN_OR_RETURN(const Json* value, required(object, path, name.c_str()));
    MEROPE_ASSIGN_OR_RETURN(model.*parameter.member, number_at(*value, member(path, name)));
  }
  for (const auto& item : object.items()) {
    const auto parameters = Model::parameters();
    if (std::none_of(parameters.begin(), parameters.end(), [&](const auto& p) { return p.name == item.key(); })) {
      return bad_field(member(path, item.key().substr(0, 64)), "is not a known key");
    }
  }
  return model;
}

// Fills lens.model when `name` is that of alternative kIndex or a later one; false when no alternative has it.
template <std::size_t kIndex = 0>
Result<bool> parse_named_model(const std::string& name, const Json& object, const std::string& path, Lens& lens) {
  if constexpr (kIndex == std::variant_size_v<decltype(Lens::model)>) {
    return false;
  } else {
    using Model = std::variant_alternative_t<kIndex, decltype(Lens::model)>;
    if (name != Model::kName) {
      return parse_named_model<kIndex + 1>(name, object, path, lens);
    }
    MEROPE_ASSIGN_OR_RETURN(lens.model, parse_model<Model>(object, path));
    return true;
  }
}

Result<Lens> parse_lens(const Json& object, const std::string& path) {
  if (!object.is_object()) {
    return bad_field(path, kind_of(object) + " where an object is expected");
  }
  Lens lens;
  MEROPE_ASSIGN_OR_RETURN(lens.width, whole_number(object, path, "width"));
  MEROPE_ASSIGN_OR_RETURN(lens.height, whole_number(object, path, "height"));
  bool has_model = false;
  for (const auto& item : object.items()) {
    if (item.key() == "width" || item.key() == "height") {
      continue;
    }
    const std::string field = member(path, item.key().substr(0, 64));
    if (has_model) {
      return bad_field(field, "a lens has exactly one model");
    }
    MEROPE_ASSIGN_OR_RETURN(has_model, parse_named_model(item.key(), item.value(), field, lens));
    if (!has_model) {
      return bad_field(field, "is not a known camera model");
    }
  }
  if (!has_model) {
    return bad_field(path, "has no camera model");
  }
  return lens;
}

Result<Matrix34> parse_pose(const Json& value, const std::string& path) {
  if (!value.is_array()) {
    return bad_field(path, kind_of(value) + " where an array of 12 or 16 numbers is expected");
  }
  if (value.size() != 12 && value.size() != 16) {
    return bad_field(path, std::to_string(value.size()) + " numbers, a pose has 12 or 16");
  }
  Matrix34 matrix;
  for (std::size_t i = 0; i < value.size(); ++i) {
    MEROPE_ASSIGN_OR_RETURN(const double number, number_at(value[i], path + "[" + std::to_string(i) + "]"));
    if (i < 12) {
      matrix(static_cast<int>(i / 4), static_cast<int>(i % 4)) = number;
    } else if (number != (i == 15 ? 1 : 0)) {
      return bad_field(path, "the last row of a 4x4 matrix is 0 0 0 1");
    }
  }
  return matrix;
}

Result<Trajectory> parse_document(const Json& document, const FormatDefaults& defaults) {
  MEROPE_RETURN_IF_ERROR(
      require_object(document, "", {"format", "version", "pose_direction", "camera_axes", "length_unit", "lens", "frames"}));
  MEROPE_ASSIGN_OR_RETURN(const Json* format, required(document, "", "format"));
  if (!format->is_string() || format->get_ref<const std::string&>() != kFormatName) {
    return bad_field("format", "is not \"" + std::string(kFormatName) + "\"");
  }
  MEROPE_ASSIGN_OR_RETURN(const int version, whole_number(document, "", "version"));
  if (version != kVersion) {
    return bad_field("version", std::to_string(version) + " is not known; this program reads " + std::to_string(kVersion));
  }
  PoseConventions conventions;
  MEROPE_ASSIGN_OR_RETURN(conventions.direction, one_of<PoseDirection>(document, "pose_direction", kPoseDirectionNames));
  MEROPE_ASSIGN_OR_RETURN(conventions.axes, one_of<CameraAxes>(document, "camera_axes", kCameraAxesNames));
  MEROPE_ASSIGN_OR_RETURN(conventions.unit, one_of<LengthUnit>(document, "length_unit", kLengthUnitNames));
  std::optional<Lens> shared_lens = defaults.lens;
  if (const auto it = document.find("lens"); it != document.end()) {
    MEROPE_ASSIGN_OR_RETURN(shared_lens, parse_lens(*it, "lens"));
  }
  MEROPE_ASSIGN_OR_RETURN(const Json* frames, required(document, "", "frames"));
  if (!frames->is_array()) {
    return bad_field("frames", kind_of(*frames) + " where an array is expected");
  }

  Trajectory trajectory;
  trajectory.frames.reserve(frames->size());
  std::size_t n_times = 0;
  for (std::size_t i = 0; i < frames->size(); ++i) {
    const Json& item = (*frames)[i];
    const std::string path = "frames[" + std::to_string(i) + "]";
    MEROPE_RETURN_IF_ERROR(require_object(item, path, {"pose", "time_s", "lens"}));
    MEROPE_ASSIGN_OR_RETURN(const Json* pose, required(item, path, "pose"));
    MEROPE_ASSIGN_OR_RETURN(const Matrix34 matrix, parse_pose(*pose, path + ".pose"));
    TrajectoryFrame frame;
    frame.c2w = pose_from(matrix, conventions);
    if (const auto it = item.find("time_s"); it != item.end()) {
      MEROPE_ASSIGN_OR_RETURN(frame.time_s, number_at(*it, path + ".time_s"));
      ++n_times;
    } else if (defaults.fps) {
      frame.time_s = static_cast<double>(i) / *defaults.fps;
    }
    if (n_times != 0 && n_times != i + 1) {
      return bad_field(path + ".time_s", "times stand either at all frames or at none");
    }
    if (const auto it = item.find("lens"); it != item.end()) {
      MEROPE_ASSIGN_OR_RETURN(frame.lens, parse_lens(*it, path + ".lens"));
    } else if (shared_lens) {
      frame.lens = *shared_lens;
    } else {
      return bad_field(path + ".lens", "is missing, and so is a shared lens");
    }
    trajectory.frames.push_back(std::move(frame));
  }
  if (n_times == 0 && !trajectory.frames.empty() && !defaults.fps) {
    return bad_field("frames[0].time_s", "is missing, and so is a frame rate");
  }
  return trajectory;
}

Json lens_to_json(const Lens& lens) {
  Json object = {{"width", lens.width}, {"height", lens.height}};
  std::visit(
      [&](const auto& model) {
        Json parameters = Json::object();
        for (const auto& parameter : model.parameters()) {
          parameters[std::string(parameter.name)] = model.*parameter.member;
        }
        object[std::string(model_name(lens))] = std::move(parameters);
      },
      lens.model);
  return object;
}

}  // namespace

Result<Trajectory> parse_merope_json(std::string_view text, const FormatDefaults& defaults) {
  try {
    return parse_document(Json::parse(text), defaults);
  } catch (const Json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."; the part in brackets is noise to a user.
    const std::string_view what = e.what();
    const std::size_t bracket = what.find("] ");
    return invalid_argument(std::string(bracket == std::string_view::npos ? what : what.substr(bracket + 2)));
  }
}

std::string write_merope_json(const Trajectory& trajectory) {
  const std::vector<TrajectoryFrame>& frames = trajectory.frames;
  const bool one_lens =
      !frames.empty() && std::all_of(frames.begin(), frames.end(), [&](const auto& f) { return f.lens == frames[0].lens; });
  Json document = {
      {"format", kFormatName},
      {"version", kVersion},
      {"pose_direction", kPoseDirectionNames[0]},
      {"camera_axes", kCameraAxesNames[0]},
      {"length_unit", kLengthUnitNames[0]},
  };
  if (one_lens) {
    document["lens"] = lens_to_json(frames[0].lens);
  }
  // The frames stand one a line, so that two files can be compared by eye.
  std::string text = document.dump(2);
  text.erase(text.size() - 2);  // "\n}"
  text += ",\n  \"frames\": [";
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const Pose& pose = frames[i].c2w;
    Json item;
    item["time_s"] = frames[i].time_s;
    for (int row = 0; row < 3; ++row) {
      for (int column = 0; column < 4; ++column) {
        item["pose"].push_back(column < 3 ? pose.rotation(row, column) : pose.centre(row));
      }
    }
    if (!one_lens) {
      item["lens"] = lens_to_json(frames[i].lens);
    }
    text += (i == 0 ? "\n    " : ",\n    ") + item.dump();
  }
  return text + "\n  ]\n}\n";
}

}  // namespace merope::camera
