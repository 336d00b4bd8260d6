#include "client/cli/request_builder.h"

#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "core/camera/io/trajectory_formats.h"
#include "core/camera/trajectory_shapes.h"
#include "proto/wire/trajectory_codec.h"

namespace merope::cli {
namespace {

constexpr std::uint32_t kShapeFrames = 49;
constexpr double kShapeFovDeg = 60;

// What one request may hold; the file is not read when it is larger.
constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{64} << 20U;

Result<std::string> read_file(const std::string& option, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(path, error)) {
    return not_found(fmt::format("{} {}: there is no such file", option, path));
  }
  if (fs::is_directory(path, error)) {
    return not_found(fmt::format("{} {}: a folder, not a file", option, path));
  }
  if (const auto size = fs::file_size(path, error); !error && size > kMaxFileBytes) {
    return invalid_argument(
        fmt::format("{} {}: {} bytes, at most {} fit into a request", option, path, size, kMaxFileBytes));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) {
    return not_found(fmt::format("{} {}: can not be read", option, path));
  }
  return std::move(content).str();
}

// The defaults of the model that the request will run on; asks the service at most once.
class ModelDefaults {
 public:
  ModelDefaults(const SubmitOptions& options, const CapabilitiesSource& source) : options_(options), source_(source) {}

  Result<v1::ModelCapabilities> get() {
    if (model_) {
      return *model_;
    }
    MEROPE_ASSIGN_OR_RETURN(const v1::Capabilities capabilities, source_());
    if (capabilities.models_size() == 0) {
      return unavailable("no worker has announced a model yet");
    }
    std::string names;
    for (const v1::ModelCapabilities& model : capabilities.models()) {
      if (model.name() == options_.model || (options_.model.empty() && capabilities.models_size() == 1)) {
        model_ = model;
        return model;
      }
      names += (names.empty() ? "" : ", ") + model.name();
    }
    return invalid_argument(options_.model.empty() ? fmt::format("--model: the service has several: {}", names)
                                                   : fmt::format("--model {}: the service has {}", options_.model, names));
  }

 private:
  const SubmitOptions& options_;
  const CapabilitiesSource& source_;
  std::optional<v1::ModelCapabilities> model_;
};

camera::Lens to_lens(const PinholeOption& option) {
  return {static_cast<int>(option.picture.width),
          static_cast<int>(option.picture.height),
          camera::Pinhole{option.fx, option.fy, option.cx, option.cy}};
}

// Empty: the file is to bring its own.
Result<std::optional<camera::Lens>> choose_lens(const SubmitOptions& options, ModelDefaults& defaults) {
  if (options.lens) {
    return std::optional(to_lens(*options.lens));
  }
  if (!options.fov_deg && options.shape.empty()) {
    return std::optional<camera::Lens>();
  }
  PictureSize picture;
  if (options.size) {
    picture = *options.size;
  } else {
    MEROPE_ASSIGN_OR_RETURN(const v1::ModelCapabilities model, defaults.get());
    picture = {model.default_width(), model.default_height()};
  }
  return std::optional(to_lens(lens_from_fov(options.fov_deg.value_or(kShapeFovDeg), picture)));
}

Result<camera::Trajectory> trajectory_from_file(const SubmitOptions& options,
                                                const std::optional<camera::Lens>& lens,
                                                double fps) {
  MEROPE_ASSIGN_OR_RETURN(const std::string text, read_file("--trajectory", options.trajectory_file));
  const std::string format = options.format == "auto" ? "" : options.format;
  Result<camera::Trajectory> parsed = camera::parse_trajectory(text, format, {.lens = lens, .fps = fps});
  if (!parsed) {
    Error error = std::move(parsed).error();
    error.message = fmt::format("--trajectory {}: {}{}",
                                options.trajectory_file,
                                error.message,
                                lens ? "" : " (--lens or --fov give a lens to a file that has none)");
    for (FieldViolation& violation : error.violations) {
      violation.field = options.trajectory_file + ": " + violation.field;
    }
    return error;
  }
  camera::Trajectory all = *std::move(parsed);
  const std::size_t n_poses = all.frames.size();
  const std::size_t n_wanted =
      options.frames.value_or(static_cast<std::uint32_t>(n_poses - std::min<std::size_t>(n_poses, options.first)));
  if (n_wanted == 0 || options.first + n_wanted > n_poses) {
    return invalid_argument(fmt::format("--trajectory {}: --first {} --frames {} goes beyond its {} poses",
                                        options.trajectory_file,
                                        options.first,
                                        n_wanted,
                                        n_poses));
  }
  if (n_wanted % 4 != 1) {
    return invalid_argument(
        fmt::format("--trajectory {}: {} poses; a clip has 4n+1 frames, choose them with --first and --frames",
                    options.trajectory_file,
                    n_wanted));
  }
  const auto begin = all.frames.begin() + static_cast<std::ptrdiff_t>(options.first);
  camera::Trajectory chosen{{begin, begin + static_cast<std::ptrdiff_t>(n_wanted)}};
  if (lens) {
    for (camera::TrajectoryFrame& frame : chosen.frames) {
      frame.lens = *lens;
    }
  }
  return chosen;
}

Status add_trajectory(const SubmitOptions& options, ModelDefaults& defaults, v1::GenerationRequest& request) {
  MEROPE_ASSIGN_OR_RETURN(const std::optional<camera::Lens> lens, choose_lens(options, defaults));
  double fps = options.fps.value_or(0);
  if (!options.fps) {
    MEROPE_ASSIGN_OR_RETURN(const v1::ModelCapabilities model, defaults.get());
    fps = model.default_fps();
  }
  camera::Trajectory trajectory;
  if (options.shape.empty()) {
    MEROPE_ASSIGN_OR_RETURN(trajectory, trajectory_from_file(options, lens, fps));
  } else {
    const std::uint32_t n_frames = options.frames.value_or(kShapeFrames);
    // The service refuses far fewer; this keeps a slip of the hand from filling the memory.
    if (n_frames < 1 || n_frames > 100'000) {
      return invalid_argument(fmt::format("--frames {}: 1 to 100000", n_frames));
    }
    Result<camera::Trajectory> shape = camera::trajectory_from_shape(options.shape, static_cast<int>(n_frames), fps, *lens);
    if (!shape) {
      return invalid_argument("--shape: " + shape.error().message);
    }
    trajectory = *std::move(shape);
  }
  request.set_frames(static_cast<std::uint32_t>(trajectory.frames.size()));
  *request.mutable_trajectory() = wire::serialize_trajectory(trajectory);
  return {};
}

Status add_conditioning(const SubmitOptions& options, v1::GenerationRequest& request) {
  std::uintmax_t total = 0;
  for (const std::string& path : options.images) {
    MEROPE_ASSIGN_OR_RETURN(std::string bytes, read_file("--image", path));
    total += bytes.size();
    if (total > kMaxFileBytes) {
      return invalid_argument(fmt::format("--image {}: the pictures are more than {} bytes", path, kMaxFileBytes));
    }
    request.mutable_conditioning()->mutable_pictures()->add_files(std::move(bytes));
  }
  if (!options.clip.empty()) {
    MEROPE_ASSIGN_OR_RETURN(std::string bytes, read_file("--clip", options.clip));
    request.mutable_conditioning()->set_mp4_clip(std::move(bytes));
    request.mutable_conditioning()->set_clip_frames(options.clip_frames.value_or(0));
  }
  return {};
}

void set_seconds(double seconds, google::protobuf::Duration& duration) {
  const double whole = std::floor(seconds);
  duration.set_seconds(static_cast<std::int64_t>(whole));
  duration.set_nanos(static_cast<std::int32_t>((seconds - whole) * 1e9));
}

v1::OutputFormat output_format(const std::string& name) {
  if (name == "rgb") {
    return v1::OUTPUT_FORMAT_RGB_EXACT;
  }
  return name == "png" ? v1::OUTPUT_FORMAT_PNG_FRAMES : v1::OUTPUT_FORMAT_H264;
}

v1::Priority priority(const std::string& name) {
  if (name == "high") {
    return v1::PRIORITY_HIGH;
  }
  return name == "low" ? v1::PRIORITY_LOW : v1::PRIORITY_NORMAL;
}

// The enumerator PREFIX_NAME of a lower-case name; 0, unspecified, of an empty one. The command line has checked the name.
template <typename Enum>
Enum parsed(bool (*parse)(const std::string&, Enum*), const std::string& prefix, const std::string& name) {
  std::string text = prefix;
  for (const char letter : name) {
    text += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  Enum value = Enum{};
  parse(text, &value);
  return value;
}

}  // namespace

Result<v1::GenerationRequest> build_request(const SubmitOptions& options, const CapabilitiesSource& capabilities) {
  ModelDefaults defaults(options, capabilities);
  v1::GenerationRequest request;
  MEROPE_RETURN_IF_ERROR(add_conditioning(options, request));
  MEROPE_RETURN_IF_ERROR(add_trajectory(options, defaults, request));
  request.set_request_id(options.request_id);
  request.set_model(options.model);
  request.set_encoding(options.encoding);
  request.set_prompt(options.prompt);
  request.set_negative_prompt(options.negative_prompt);
  if (options.size) {
    request.set_width(options.size->width);
    request.set_height(options.size->height);
  }
  request.set_fps(options.fps.value_or(0));
  request.set_steps(options.steps.value_or(0));
  if (options.seed) {
    request.set_seed(*options.seed);
  }
  if (options.guidance) {
    request.set_guidance_scale(*options.guidance);
  }
  if (options.shift) {
    request.set_shift(*options.shift);
  }
  request.set_solver(parsed<v1::Solver>(&v1::Solver_Parse, "SOLVER_", options.solver));
  request.set_sigma_grid(parsed<v1::SigmaGrid>(&v1::SigmaGrid_Parse, "SIGMA_GRID_", options.sigma_grid));
  request.set_output(output_format(options.output));
  request.set_priority(priority(options.priority));
  if (options.max_queue_wait_s) {
    set_seconds(*options.max_queue_wait_s, *request.mutable_max_queue_wait());
  }
  if (options.max_run_time_s) {
    set_seconds(*options.max_run_time_s, *request.mutable_max_run_time());
  }
  return request;
}

}  // namespace merope::cli
