#include "proto/wire/capabilities_codec.h"

namespace merope::wire {
namespace {

Error broken_model(const std::string& name, const char* what) {
  return {ErrorCode::kDataLoss, "announcement of model \"" + name + "\": " + what};
}

}  // namespace

v1::Solver serialize_solver(Solver solver) {
  switch (solver) {
    case Solver::kUniPc: return v1::SOLVER_UNIPC;
    case Solver::kEuler: return v1::SOLVER_EULER;
    case Solver::kDpm2M: return v1::SOLVER_DPMPP_2M;
  }
  return v1::SOLVER_UNSPECIFIED;
}

std::optional<Solver> parse_solver(v1::Solver solver) {
  switch (solver) {
    case v1::SOLVER_UNIPC: return Solver::kUniPc;
    case v1::SOLVER_EULER: return Solver::kEuler;
    case v1::SOLVER_DPMPP_2M: return Solver::kDpm2M;
    default: return std::nullopt;
  }
}

v1::OutputFormat serialize_output(OutputFormat output) {
  switch (output) {
    case OutputFormat::kH264: return v1::OUTPUT_FORMAT_H264;
    case OutputFormat::kRgbExact: return v1::OUTPUT_FORMAT_RGB_EXACT;
    case OutputFormat::kPngFrames: return v1::OUTPUT_FORMAT_PNG_FRAMES;
  }
  return v1::OUTPUT_FORMAT_UNSPECIFIED;
}

v1::ModelCapabilities serialize_model(const ModelDescription& model) {
  v1::ModelCapabilities message;
  message.set_name(model.name);
  message.set_architecture(model.architecture);
  for (const std::string& encoding : model.encodings) {
    message.add_encodings(encoding);
  }
  message.set_size_multiple(static_cast<std::uint32_t>(model.size_multiple));
  message.set_default_width(static_cast<std::uint32_t>(model.default_width));
  message.set_default_height(static_cast<std::uint32_t>(model.default_height));
  message.set_default_fps(static_cast<std::uint32_t>(model.default_fps));
  message.set_default_steps(static_cast<std::uint32_t>(model.default_steps));
  message.set_default_guidance_scale(model.default_guidance_scale);
  message.set_default_shift(model.default_shift);
  message.set_default_solver(serialize_solver(model.default_solver));
  for (const v1::Solver solver : {v1::SOLVER_UNIPC, v1::SOLVER_EULER, v1::SOLVER_DPMPP_2M}) {
    message.add_solvers(solver);
  }
  message.set_trained(model.trained);
  return message;
}

Result<ModelDescription> parse_model(const v1::ModelCapabilities& message) {
  if (message.name().empty()) {
    return broken_model("", "it has no name");
  }
  if (message.encodings().empty()) {
    return broken_model(message.name(), "it names no encoding");
  }
  const std::optional<Solver> solver = parse_solver(message.default_solver());
  if (!solver) {
    return broken_model(message.name(), "its default solver is unknown here");
  }
  constexpr std::uint32_t kMaxInt = 1U << 20U;
  for (const std::uint32_t number : {message.size_multiple(),
                                     message.default_width(),
                                     message.default_height(),
                                     message.default_fps(),
                                     message.default_steps()}) {
    if (number == 0 || number > kMaxInt) {
      return broken_model(message.name(), "a size, rate or step count is missing or absurd");
    }
  }
  ModelDescription model;
  model.name = message.name();
  model.architecture = message.architecture();
  model.encodings.assign(message.encodings().begin(), message.encodings().end());
  model.size_multiple = static_cast<int>(message.size_multiple());
  model.default_width = static_cast<int>(message.default_width());
  model.default_height = static_cast<int>(message.default_height());
  model.default_fps = static_cast<int>(message.default_fps());
  model.default_steps = static_cast<int>(message.default_steps());
  model.default_guidance_scale = message.default_guidance_scale();
  model.default_shift = message.default_shift();
  model.default_solver = *solver;
  model.trained = message.trained();
  return model;
}

v1::Limits serialize_limits(const GenerationLimits& limits) {
  v1::Limits message;
  message.set_max_frames(limits.max_frames);
  message.set_max_pixels_per_frame(limits.max_pixels_per_frame);
  message.set_max_pixels_per_clip(limits.max_pixels_per_clip);
  message.set_max_steps(limits.max_steps);
  message.set_max_prompt_bytes(limits.max_prompt_bytes);
  message.set_max_picture_bytes(limits.max_picture_bytes);
  message.set_max_message_bytes(limits.max_message_bytes);
  message.set_max_queued_jobs(limits.max_queued_jobs);
  return message;
}

}  // namespace merope::wire
