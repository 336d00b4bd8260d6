#include "proto/wire/generation_codec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "core/base/ids.h"
#include "core/base/sha256.h"
#include "proto/wire/capabilities_codec.h"
#include "proto/wire/trajectory_codec.h"

namespace merope::wire {
namespace {

constexpr std::uint32_t kMaxSide = 65536;
constexpr std::uint32_t kMaxFps = 120;

std::string joined(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

// A name as the client spelt it, but no longer than a message should be.
std::string quoted(const std::string& name) {
  constexpr std::size_t kMaxShown = 64;
  return name.size() <= kMaxShown ? '"' + name + '"'
                                  : fmt::format("\"{}...\" ({} bytes)", name.substr(0, kMaxShown), name.size());
}

// Each grid and its number on the wire.
constexpr std::pair<SigmaGrid, v1::SigmaGrid> kSigmaGrids[] = {
    {SigmaGrid::kUniPc, v1::SIGMA_GRID_UNIPC},
    {SigmaGrid::kUniPcLegacy, v1::SIGMA_GRID_UNIPC_LEGACY},
    {SigmaGrid::kWanUniPc, v1::SIGMA_GRID_WAN_UNIPC},
    {SigmaGrid::kWanDpm, v1::SIGMA_GRID_WAN_DPM},
    {SigmaGrid::kEuler, v1::SIGMA_GRID_EULER},
};

std::optional<SigmaGrid> parse_sigma_grid(v1::SigmaGrid number) {
  for (const auto& [grid, wire] : kSigmaGrids) {
    if (wire == number) {
      return grid;
    }
  }
  return std::nullopt;
}

v1::SigmaGrid serialize_sigma_grid(std::optional<SigmaGrid> wanted) {
  for (const auto& [grid, wire] : kSigmaGrids) {
    if (grid == wanted) {
      return wire;
    }
  }
  return v1::SIGMA_GRID_UNSPECIFIED;
}

const ModelDescription* find_model(const std::string& name,
                                   std::span<const ModelDescription> models,
                                   Violations& violations) {
  if (name.empty() && models.size() == 1) {
    return &models.front();
  }
  std::vector<std::string> names;
  for (const ModelDescription& model : models) {
    if (model.name == name) {
      return &model;
    }
    names.push_back(model.name);
  }
  violations.add("model",
                 name.empty() ? "is required, the service has several: " + joined(names)
                              : fmt::format("unknown model {}; there are: {}", quoted(name), joined(names)));
  return nullptr;
}

// One request on its way to a spec. `model_` is null when the model is unknown: what needs it is then left out.
class Check {
 public:
  Check(const v1::GenerationRequest& request,
        std::span<const ModelDescription> models,
        const GenerationLimits& limits,
        CheckedRequest& out)
      : request_(request),
        limits_(limits),
        spec_(out.spec),
        terms_(out.terms),
        violations_(out.violations),
        model_(find_model(request.model(), models, out.violations)) {}

  void run(std::uint64_t default_seed) {
    check_names();
    check_size();
    check_frames();
    check_sampling();
    spec_.seed = request_.has_seed() ? request_.seed() : default_seed;
    check_choices();
    check_conditioning();
    check_trajectory();
    terms_.max_queue_wait = check_duration("max_queue_wait", request_.has_max_queue_wait(), request_.max_queue_wait());
    terms_.max_run_time = check_duration("max_run_time", request_.has_max_run_time(), request_.max_run_time());
  }

 private:
  void check_names() {
    if (!request_.request_id().empty() && !is_valid_id(request_.request_id())) {
      violations_.add("request_id", "must be 1 to 128 characters of A-Z a-z 0-9 . _ -");
    }
    terms_.request_id = request_.request_id();
    if (model_ != nullptr) {
      spec_.model = model_->name;
      const auto& encodings = model_->encodings;
      if (request_.encoding().empty()) {
        spec_.encoding = encodings.front();
      } else if (std::find(encodings.begin(), encodings.end(), request_.encoding()) != encodings.end()) {
        spec_.encoding = request_.encoding();
      } else {
        violations_.add(
            "encoding",
            fmt::format(
                "model {} has no encoding {}; it has: {}", model_->name, quoted(request_.encoding()), joined(encodings)));
      }
    }
    const auto check_prompt = [&](const char* field, const std::string& prompt) {
      if (prompt.size() > limits_.max_prompt_bytes) {
        violations_.add(field, fmt::format("has {} bytes; at most {} are allowed", prompt.size(), limits_.max_prompt_bytes));
      }
    };
    check_prompt("prompt", request_.prompt());
    check_prompt("negative_prompt", request_.negative_prompt());
    if (violations_.empty()) {  // else nobody will read them
      spec_.prompt = request_.prompt();
      spec_.negative_prompt = request_.negative_prompt();
    }
  }

  void check_size() {
    const int width = check_side("width", request_.width(), model_ != nullptr ? model_->default_width : 0);
    const int height = check_side("height", request_.height(), model_ != nullptr ? model_->default_height : 0);
    if (width == 0 || height == 0) {
      return;
    }
    if (const auto pixels = static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height);
        pixels > limits_.max_pixels_per_frame) {
      violations_.add(
          "width",
          fmt::format("{}x{} is {} pixels; at most {} are allowed", width, height, pixels, limits_.max_pixels_per_frame));
      return;
    }
    spec_.width = width;
    spec_.height = height;
  }

  // The side in pixels, 0 when it is wrong or not known.
  int check_side(const char* field, std::uint32_t sent, int default_side) {
    if (sent == 0) {
      return default_side;
    }
    if (sent > kMaxSide) {
      violations_.add(field, fmt::format("{} is more than {}", sent, kMaxSide));
      return 0;
    }
    if (model_ != nullptr && sent % static_cast<std::uint32_t>(model_->size_multiple) != 0) {
      violations_.add(field, fmt::format("{} is not a multiple of {}", sent, model_->size_multiple));
      return 0;
    }
    return static_cast<int>(sent);
  }

  void check_frames() {
    const auto n_poses = static_cast<std::uint32_t>(request_.trajectory().frames_size());
    if (!request_.has_trajectory()) {
      violations_.add("trajectory", "is required");
    } else if (n_poses == 0) {
      violations_.add("trajectory.frames", "is empty; one frame per RGB frame of the clip is required");
    }
    const bool given = request_.frames() != 0;
    const std::uint32_t n_frames = given ? request_.frames() : n_poses;
    const char* field = given ? "frames" : "trajectory.frames";
    if (n_frames == 0) {
      return;
    }
    if (n_frames > limits_.max_frames) {
      violations_.add(field, fmt::format("{} frames; at most {} are allowed", n_frames, limits_.max_frames));
    } else if (n_frames % 4 != 1) {
      violations_.add(field, fmt::format("{} frames; the number must be 4n+1: 1, 5, 9, ...", n_frames));
    } else if (given && n_poses != 0 && n_poses != n_frames) {
      violations_.add("trajectory.frames", fmt::format("has {} frames, but the clip has {}", n_poses, n_frames));
    } else {
      spec_.n_frames = static_cast<int>(n_frames);
    }
    const auto pixels = static_cast<std::uint64_t>(spec_.width) * static_cast<std::uint64_t>(spec_.height) *
                        static_cast<std::uint64_t>(spec_.n_frames);
    if (pixels > limits_.max_pixels_per_clip) {
      violations_.add(field,
                      fmt::format("{} frames of {}x{} are {} pixels; at most {} are allowed",
                                  n_frames,
                                  spec_.width,
                                  spec_.height,
                                  pixels,
                                  limits_.max_pixels_per_clip));
    }
  }

  void check_sampling() {
    spec_.fps = model_ != nullptr ? model_->default_fps : 0;
    if (request_.fps() > kMaxFps) {
      violations_.add("fps", fmt::format("{} is not between 1 and {}", request_.fps(), kMaxFps));
    } else if (request_.fps() != 0) {
      spec_.fps = static_cast<int>(request_.fps());
    }
    spec_.steps = model_ != nullptr ? model_->default_steps : 0;
    if (request_.steps() > limits_.max_steps) {
      violations_.add("steps", fmt::format("{} is not between 1 and {}", request_.steps(), limits_.max_steps));
    } else if (request_.steps() != 0) {
      spec_.steps = static_cast<int>(request_.steps());
    }
    spec_.guidance_scale = model_ != nullptr ? model_->default_guidance_scale : 1;
    if (request_.has_guidance_scale()) {
      spec_.guidance_scale = check_number("guidance_scale", request_.guidance_scale(), 1, 30);
    }
    spec_.shift = model_ != nullptr ? model_->default_shift : 1;
    if (request_.has_shift()) {
      spec_.shift = check_number("shift", request_.shift(), 0.01, 100);
    }
  }

  double check_number(const char* field, double value, double low, double high) {
    if (!(value >= low && value <= high)) {  // NaN is refused too
      violations_.add(field, fmt::format("{} is not between {} and {}", value, low, high));
    }
    return value;
  }

  void check_choices() {
    check_solver();
    switch (request_.output()) {
      case v1::OUTPUT_FORMAT_UNSPECIFIED:
      case v1::OUTPUT_FORMAT_H264: spec_.output = OutputFormat::kH264; break;
      case v1::OUTPUT_FORMAT_RGB_EXACT: spec_.output = OutputFormat::kRgbExact; break;
      case v1::OUTPUT_FORMAT_PNG_FRAMES: spec_.output = OutputFormat::kPngFrames; break;
      default: violations_.add("output", fmt::format("unknown value {}", static_cast<int>(request_.output())));
    }
    switch (request_.priority()) {
      case v1::PRIORITY_UNSPECIFIED: terms_.priority = v1::PRIORITY_NORMAL; break;
      case v1::PRIORITY_HIGH:
      case v1::PRIORITY_NORMAL:
      case v1::PRIORITY_LOW: terms_.priority = request_.priority(); break;
      default: violations_.add("priority", fmt::format("unknown value {}", static_cast<int>(request_.priority())));
    }
  }

  void check_solver() {
    spec_.solver = model_ != nullptr ? model_->default_solver : Solver::kUniPc;
    if (request_.solver() != v1::SOLVER_UNSPECIFIED) {
      const std::optional<Solver> solver = parse_solver(request_.solver());
      if (!solver) {
        violations_.add("solver", fmt::format("unknown value {}", static_cast<int>(request_.solver())));
      }
      spec_.solver = solver.value_or(spec_.solver);
    }
    if (request_.sigma_grid() == v1::SIGMA_GRID_UNSPECIFIED) {
      return;
    }
    spec_.sigma_grid = parse_sigma_grid(request_.sigma_grid());
    if (!spec_.sigma_grid) {
      violations_.add("sigma_grid", fmt::format("unknown value {}", static_cast<int>(request_.sigma_grid())));
    } else if (!can_walk(spec_.solver, *spec_.sigma_grid)) {
      violations_.add("sigma_grid",
                      fmt::format("{} starts at 1, which the solver {} can not",
                                  v1::SigmaGrid_Name(request_.sigma_grid()),
                                  v1::Solver_Name(serialize_solver(spec_.solver))));
    }
  }

  void check_conditioning() {
    if (!request_.has_conditioning()) {
      return;
    }
    const v1::ConditioningFrames& conditioning = request_.conditioning();
    std::uint64_t count = 0;
    switch (conditioning.source_case()) {
      case v1::ConditioningFrames::SOURCE_NOT_SET:
        violations_.add("conditioning", "neither pictures nor mp4_clip is set; leave conditioning out for none");
        return;
      case v1::ConditioningFrames::kPictures:
        count = static_cast<std::uint64_t>(conditioning.pictures().files_size());
        check_conditioning_count(count, spec_.n_frames, "conditioning.pictures.files", violations_);
        if (conditioning.clip_frames() != 0) {
          violations_.add("conditioning.clip_frames", "belongs to mp4_clip, but pictures are set");
        }
        break;
      case v1::ConditioningFrames::kMp4Clip:
        count = conditioning.clip_frames();
        if (count != 0) {
          check_conditioning_count(count, spec_.n_frames, "conditioning.clip_frames", violations_);
        }
        break;
    }
    spec_.n_conditioning_frames = static_cast<int>(std::min<std::uint64_t>(count, limits_.max_frames));
  }

  // Only when the number of frames is right: a count over the limit is not worked through.
  void check_trajectory() {
    if (spec_.n_frames == 0) {
      return;
    }
    const ClipShape clip{spec_.width, spec_.height, spec_.fps > 0 ? spec_.fps : 24};
    if (auto trajectory = parse_trajectory(request_.trajectory(), clip, violations_)) {
      spec_.trajectory = *std::move(trajectory);
    }
  }

  std::chrono::milliseconds check_duration(const char* field, bool given, const google::protobuf::Duration& duration) {
    constexpr std::int64_t kDaySeconds = 86'400;
    constexpr std::int32_t kNanosPerSecond = 1'000'000'000;
    if (!given) {
      return std::chrono::milliseconds(0);
    }
    const std::int64_t seconds = duration.seconds();
    const std::int32_t nanos = duration.nanos();
    const bool valid = nanos >= 0 && nanos < kNanosPerSecond && seconds >= 1 &&
                       (seconds < kDaySeconds || (seconds == kDaySeconds && nanos == 0));
    if (!valid) {
      violations_.add(field, fmt::format("{} s and {} ns is not between 1 s and 24 h", seconds, nanos));
      return std::chrono::milliseconds(0);
    }
    return std::chrono::milliseconds(seconds * 1000 + nanos / 1'000'000);
  }

  const v1::GenerationRequest& request_;
  const GenerationLimits& limits_;
  GenerationSpec& spec_;
  GenerationTerms& terms_;
  Violations& violations_;
  const ModelDescription* model_;
};

}  // namespace

CheckedRequest check_request(const v1::GenerationRequest& request,
                             std::span<const ModelDescription> models,
                             const GenerationLimits& limits,
                             std::uint64_t default_seed) {
  MEROPE_CHECK(!models.empty(), "a request is checked against at least one model");
  CheckedRequest checked;
  Check(request, models, limits, checked).run(default_seed);
  return checked;
}

void check_conditioning_count(std::uint64_t n_conditioning, int n_frames, const std::string& field, Violations& violations) {
  if (n_conditioning % 4 != 1) {
    violations.add(field, fmt::format("{} frames; the number must be 4n+1: 1, 5, 9, ...", n_conditioning));
  } else if (n_frames > 0 && n_conditioning >= static_cast<std::uint64_t>(n_frames)) {
    violations.add(field, fmt::format("{} frames; must be fewer than the {} of the clip", n_conditioning, n_frames));
  }
}

v1::GenerationRequest serialize_spec(const GenerationSpec& spec) {
  v1::GenerationRequest request;
  request.set_model(spec.model);
  request.set_encoding(spec.encoding);
  request.set_prompt(spec.prompt);
  request.set_negative_prompt(spec.negative_prompt);
  request.set_width(static_cast<std::uint32_t>(spec.width));
  request.set_height(static_cast<std::uint32_t>(spec.height));
  request.set_frames(static_cast<std::uint32_t>(spec.n_frames));
  request.set_fps(static_cast<std::uint32_t>(spec.fps));
  request.set_seed(spec.seed);
  request.set_steps(static_cast<std::uint32_t>(spec.steps));
  request.set_guidance_scale(spec.guidance_scale);
  request.set_shift(spec.shift);
  request.set_solver(serialize_solver(spec.solver));
  request.set_sigma_grid(serialize_sigma_grid(spec.sigma_grid));
  request.set_output(serialize_output(spec.output));
  *request.mutable_trajectory() = serialize_trajectory(spec.trajectory);
  return request;
}

std::string request_digest(const v1::GenerationRequest& request) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    request.SerializeToCodedStream(&coded);
  }
  // request_id is field 1 and protobuf writes fields in the order of their numbers, so it is the beginning of the bytes.
  // Cutting it off there spares a copy of up to 64 MiB of pictures.
  std::size_t id_bytes = 0;
  if (!request.request_id().empty()) {
    v1::GenerationRequest only_id;
    only_id.set_request_id(request.request_id());
    const std::string prefix = only_id.SerializeAsString();
    MEROPE_CHECK(bytes.starts_with(prefix), "request_id is not the first field on the wire");
    id_bytes = prefix.size();
  }
  return sha256_hex(std::string_view(bytes).substr(id_bytes));
}

}  // namespace merope::wire
