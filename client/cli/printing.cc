#include "client/cli/printing.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>

#include <fmt/core.h>
#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>

#include "client/cli/progress.h"

namespace merope::cli {
namespace {

using nlohmann::json;

std::string proto_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  // Fails only on a malformed Any or a duration out of range, and no message of the service holds either in an answer.
  if (const auto status = google::protobuf::util::MessageToJsonString(message, &text, options); !status.ok()) {
    text = "{}";
  }
  return text;
}

std::string dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

// "MODEL_NAME_VALUE" without its prefix, in lower case.
std::string enum_text(std::string name, std::string_view prefix) {
  name.erase(0, std::min(name.size(), prefix.size()));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

std::string time_text(std::int64_t unix_ms) {
  if (unix_ms == 0) {
    return "-";
  }
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%SZ", &parts);
  return text.data();
}

template <typename Items>
std::string joined(const Items& items) {
  std::string text;
  for (const std::string& item : items) {
    text += text.empty() ? item : ", " + item;
  }
  return text.empty() ? "-" : text;
}

std::string why(const v1::Job& job) {
  if (job.code() == 0 && job.message().empty()) {
    return "";
  }
  return fmt::format("{}: {}", to_string(static_cast<ErrorCode>(job.code())), job.message());
}

}  // namespace

std::string json_line(const google::protobuf::Message& message) {
  return proto_json(message) + "\n";
}

std::string json_line(const v1::JobEvent& event) {
  if (!event.has_fragment()) {
    return json_line(static_cast<const google::protobuf::Message&>(event));
  }
  v1::JobEvent without_bytes = event;
  without_bytes.mutable_fragment()->clear_data();
  json object = json::parse(proto_json(without_bytes));
  object["fragment"].erase("data");
  object["fragment"]["n_bytes"] = event.fragment().data().size();
  return dump(object);
}

std::string json_line(const Error& error) {
  json violations = json::array();
  for (const FieldViolation& violation : error.violations) {
    violations.push_back({{"field", violation.field}, {"description", violation.description}});
  }
  return dump(
      {{"error", {{"code", to_string(error.code)}, {"message", error.message}, {"violations", std::move(violations)}}}});
}

std::string error_text(const Error& error) {
  if (error.violations.empty()) {
    return fmt::format("{} ({})\n", error.message, to_string(error.code));
  }
  std::string text = fmt::format("the request was refused ({}):\n", to_string(error.code));
  for (const FieldViolation& violation : error.violations) {
    text += fmt::format("  {}: {}\n", violation.field, violation.description);
  }
  return text;
}

std::string state_name(v1::JobState state) {
  return enum_text(v1::JobState_Name(state), "JOB_STATE_");
}

std::string job_text(const v1::Job& job) {
  std::string text;
  const auto row = [&](std::string_view name, const std::string& value) { text += fmt::format("{:<12}{}\n", name, value); };
  row("job", job.job_id());
  row("request", job.request_id());
  row("state", state_name(job.state()) + (job.cancel_requested() ? ", asked to stop" : ""));
  row("priority", enum_text(v1::Priority_Name(job.priority()), "PRIORITY_"));
  row("attempts", std::to_string(job.attempts()));
  row("worker", job.worker().empty() ? "-" : job.worker());
  row("submitted", time_text(job.submitted_unix_ms()));
  row("started", time_text(job.started_unix_ms()));
  row("ended", time_text(job.ended_unix_ms()));
  if (const std::string reason = why(job); !reason.empty()) {
    row("because", reason);
  }
  return text;
}

std::string job_table(const std::vector<v1::Job>& jobs) {
  std::size_t id_width = 3;
  for (const v1::Job& job : jobs) {
    id_width = std::max(id_width, job.job_id().size());
  }
  std::string text =
      fmt::format("{:<{}}  {:<9}  {:<8}  {:<20}  {}\n", "JOB", id_width, "STATE", "PRIORITY", "SUBMITTED", "WORKER");
  for (const v1::Job& job : jobs) {
    const std::string reason = why(job);
    text += fmt::format("{:<{}}  {:<9}  {:<8}  {:<20}  {}\n",
                        job.job_id(),
                        id_width,
                        state_name(job.state()),
                        enum_text(v1::Priority_Name(job.priority()), "PRIORITY_"),
                        time_text(job.submitted_unix_ms()),
                        job.worker().empty() ? "-" : job.worker());
    if (!reason.empty()) {
      text += fmt::format("{:<{}}  {}\n", "", id_width, reason);
    }
  }
  return text;
}

std::string capabilities_text(const v1::Capabilities& capabilities) {
  std::string text = fmt::format("server {}, API {}; {} jobs waiting, {} running\n",
                                 capabilities.server_version(),
                                 capabilities.api_version(),
                                 capabilities.jobs_queued(),
                                 capabilities.jobs_running());
  for (const v1::ModelCapabilities& model : capabilities.models()) {
    text += fmt::format("model {} ({}{})\n", model.name(), model.architecture(), model.trained() ? "" : ", not trained");
    text += fmt::format("  encodings  {}\n", joined(model.encodings()));
    std::vector<std::string> solvers;
    for (const int solver : model.solvers()) {
      solvers.push_back(enum_text(v1::Solver_Name(static_cast<v1::Solver>(solver)), "SOLVER_"));
    }
    text += fmt::format("  solvers    {}\n", joined(solvers));
    text += fmt::format("  defaults   {}x{}, {} fps, {} steps, guidance {:g}, shift {:g}, {}\n",
                        model.default_width(),
                        model.default_height(),
                        model.default_fps(),
                        model.default_steps(),
                        model.default_guidance_scale(),
                        model.default_shift(),
                        enum_text(v1::Solver_Name(model.default_solver()), "SOLVER_"));
    text += fmt::format("  sizes      multiples of {}\n", model.size_multiple());
  }
  std::vector<std::string> outputs;
  for (const int output : capabilities.outputs()) {
    outputs.push_back(enum_text(v1::OutputFormat_Name(static_cast<v1::OutputFormat>(output)), "OUTPUT_FORMAT_"));
  }
  const v1::Limits& limits = capabilities.limits();
  text += fmt::format("outputs      {}\n", joined(outputs));
  text += fmt::format("cameras      {}\n", joined(capabilities.camera_models()));
  text += fmt::format("conditioning {}\n", joined(capabilities.conditioning_formats()));
  text += fmt::format(
      "limits       {} frames, {} steps, {} pixels a frame, {} pixels a clip, {} bytes of prompt, {} a picture, {} a "
      "request, {} jobs waiting\n",
      limits.max_frames(),
      limits.max_steps(),
      limits.max_pixels_per_frame(),
      limits.max_pixels_per_clip(),
      limits.max_prompt_bytes(),
      bytes_text(static_cast<double>(limits.max_picture_bytes())),
      bytes_text(static_cast<double>(limits.max_message_bytes())),
      limits.max_queued_jobs());
  for (const v1::WorkerInfo& worker : capabilities.workers()) {
    text += fmt::format("worker {} on {}, {}, model {}, {}\n",
                        worker.name(),
                        worker.device(),
                        worker.version(),
                        worker.model(),
                        worker.current_job().empty() ? "idle" : worker.current_job());
  }
  if (capabilities.workers().empty()) {
    text += "no worker is there\n";
  }
  return text;
}

std::string finished_text(const v1::Finished& finished) {
  std::string text = fmt::format(
      "{} frames, {}, seed {}", finished.frames(), bytes_text(static_cast<double>(finished.bytes())), finished.seed());
  const char* separator = "; ";
  for (const v1::StageSeconds& stage : finished.stage_seconds()) {
    text += fmt::format("{}{} {:.1f} s", separator, stage_name(stage.stage()), stage.seconds());
    separator = ", ";
  }
  return text;
}

}  // namespace merope::cli
