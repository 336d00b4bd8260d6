#include "client/cli/cli_options.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <string_view>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "client/cli/exit_status.h"
#include "core/base/ids.h"
#include "core/camera/io/trajectory_formats.h"

namespace merope::cli {
namespace {

constexpr std::uint32_t kMaxPictureSide = 65'536;

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(at + 1);
  }
}

bool is_side(std::uint32_t side) {
  return side >= 1 && side <= kMaxPictureSide;
}

// An option whose text is read by one of the functions of this file.
template <typename Value>
CLI::Option* add_parsed(CLI::App& app,
                        const std::string& name,
                        std::optional<Value>& target,
                        Result<Value> (*parse)(const std::string&),
                        const std::string& description) {
  return app.add_option_function<std::string>(
      name,
      [&target, parse, name](const std::string& text) {
        Result<Value> value = parse(text);
        if (!value) {
          throw CLI::ValidationError(name, value.error().message);
        }
        target = *value;
      },
      description);
}

std::vector<std::string> format_names() {
  std::vector<std::string> names = {"auto"};
  for (const camera::TrajectoryFormat& format : camera::trajectory_formats()) {
    names.emplace_back(format.name);
  }
  return names;
}

const CLI::Validator kId(
    [](const std::string& text) {
      return is_valid_id(text) ? std::string() : "'" + text + "' is not 1 to 128 characters of A-Z a-z 0-9 . _ -";
    },
    "ID");

void add_follow(CLI::App& app, FollowOptions& follow) {
  app.add_option("-o,--out", follow.out, "File for the clip; for PNG frames a folder. Default: the job's id")
      ->type_name("PATH");
  app.add_flag("--cancel-on-interrupt", follow.cancel_on_interrupt, "Ctrl-C cancels the job instead of leaving it alone");
}

void add_submit(CLI::App& app, SubmitOptions& o) {
  app.footer(
      "Examples:\n"
      "  merope-cli submit --shape straight:20m,turn:30deg --frames 49 --prompt 'a street in the rain' -o out.mp4\n"
      "  merope-cli submit --trajectory 00.txt --format kitti --frames 49 --fov 80 --image street_*.png -o out.mp4\n"
      "  job=$(merope-cli submit --shape straight:20m --detach) && merope-cli watch $job -o out.mp4\n\n"
      "Ctrl-C while waiting leaves the job alone and says how to go on; a second one within two seconds cancels it.");
  auto* camera = app.add_option_group("camera", "Where the camera goes and what it sees");
  auto* path = camera->add_option_group("path", "Exactly one");
  path->add_option("--trajectory", o.trajectory_file, "File with one pose a frame")->type_name("FILE");
  path->add_option("--shape", o.shape, "Pieces driven one after another, such as straight:20m,turn:30deg")
      ->type_name("SHAPE");
  path->require_option(1);
  camera->add_option("--format", o.format, "Of the trajectory file; auto looks at the file")
      ->check(CLI::IsMember(format_names()))
      ->capture_default_str();
  camera->add_option("--first", o.first, "Index of the file's first pose to use")->capture_default_str();
  auto* lens = add_parsed(*camera, "--lens", o.lens, &parse_lens, "pinhole:fx,fy,cx,cy,w,h in pixels of a w x h picture");
  lens->type_name("LENS");
  camera->add_option("--fov", o.fov_deg, "Pinhole with so many degrees from left to right. Default for --shape: 60")
      ->check(CLI::Range(1.0, 175.0))
      ->excludes(lens);

  auto* clip = app.add_option_group("clip", "What is made; what is not given is the model's default");
  clip->add_option("--frames", o.frames, "Frames of the clip, 4n+1. Default: all poses of the file; 49 for --shape");
  clip->add_option("--fps", o.fps, "Frames a second")->check(CLI::Range(1, 120));
  add_parsed(*clip, "--size", o.size, &parse_size, "Width and height in pixels, such as 512x288")->type_name("WxH");
  clip->add_option("--seed", o.seed, "Seed of the noise. Default: a random one, which is reported");
  clip->add_option("--steps", o.steps, "Denoising steps")->check(CLI::PositiveNumber);
  clip->add_option("--guidance", o.guidance, "Classifier-free guidance, 1 to 30; 1 turns it off")
      ->check(CLI::Range(1.0, 30.0));
  clip->add_option("--shift", o.shift, "Shift of the sigma grid")->check(CLI::Range(0.01, 100.0));
  clip->add_option("--solver", o.solver, "unipc, euler or dpmpp_2m")->check(CLI::IsMember({"unipc", "euler", "dpmpp_2m"}));
  clip->add_option(
          "--sigma-grid", o.sigma_grid, "Spacing of the noise levels: unipc, unipc_legacy, wan_unipc, wan_dpm, euler")
      ->check(CLI::IsMember({"unipc", "unipc_legacy", "wan_unipc", "wan_dpm", "euler"}));
  clip->add_option("--model", o.model, "Name, as `capabilities` lists it");
  clip->add_option("--encoding", o.encoding, "Camera encoding, as `capabilities` lists it");
  clip->add_option("--prompt", o.prompt, "What is to be seen");
  clip->add_option("--negative-prompt", o.negative_prompt, "What is not to be seen");

  auto* known = app.add_option_group("known beginning", "Frames that the clip begins with: 1, 5, 9, ... of the clip's size");
  auto* image = known->add_option("--image", o.images, "PNG or JPEG files in order, one a frame")->type_name("FILE...");
  auto* mp4 = known->add_option("--clip", o.clip, "MP4 file (H.264)")->type_name("FILE")->excludes(image);
  known->add_option("--clip-frames", o.clip_frames, "How many of its frames to use. Default: all")->needs(mp4);

  auto* job = app.add_option_group("job", "How it is queued and delivered");
  job->add_option("--output", o.output, "h264 (MP4), rgb (exact RGB values in an MP4) or png (one file a frame)")
      ->check(CLI::IsMember({"h264", "rgb", "png"}))
      ->capture_default_str();
  job->add_option("--priority", o.priority, "high, normal or low")
      ->check(CLI::IsMember({"high", "normal", "low"}))
      ->capture_default_str();
  job->add_option("--max-queue-wait", o.max_queue_wait_s, "Give up when the job waits longer, seconds")
      ->check(CLI::Range(1.0, 86'400.0));
  job->add_option("--max-run-time", o.max_run_time_s, "Give up when an attempt runs longer, seconds")
      ->check(CLI::Range(1.0, 86'400.0));
  job->add_option("--request-id", o.request_id, "Submitting again under the same id gives the same job")->check(kId);
  job->add_flag("--detach", o.detach, "Print the job's id and do not wait");
  add_follow(*job, o.follow);
}

}  // namespace

Result<PictureSize> parse_size(const std::string& text) {
  const auto parts = split(text, 'x');
  PictureSize size;
  if (parts.size() != 2 || !read_number(parts[0], size.width) || !read_number(parts[1], size.height) ||
      !is_side(size.width) || !is_side(size.height)) {
    return invalid_argument(fmt::format("'{}' is not a size such as 512x288", text));
  }
  return size;
}

Result<PinholeOption> parse_lens(const std::string& text) {
  constexpr std::string_view kPrefix = "pinhole:";
  const Error error = invalid_argument(fmt::format("'{}' is not pinhole:fx,fy,cx,cy,w,h with positive numbers", text));
  if (!text.starts_with(kPrefix)) {
    return error;
  }
  const auto parts = split(std::string_view(text).substr(kPrefix.size()), ',');
  PinholeOption lens;
  if (parts.size() != 6 || !read_number(parts[0], lens.fx) || !read_number(parts[1], lens.fy) ||
      !read_number(parts[2], lens.cx) || !read_number(parts[3], lens.cy) || !read_number(parts[4], lens.picture.width) ||
      !read_number(parts[5], lens.picture.height)) {
    return error;
  }
  const bool positive = lens.fx > 0 && lens.fy > 0 && std::isfinite(lens.fx) && std::isfinite(lens.fy);
  const bool inside = lens.cx >= 0 && lens.cy >= 0 && lens.cx <= lens.picture.width && lens.cy <= lens.picture.height;
  if (!positive || !is_side(lens.picture.width) || !is_side(lens.picture.height)) {
    return error;
  }
  if (!inside) {
    return invalid_argument(fmt::format("'{}': the centre is not inside the picture", text));
  }
  return lens;
}

PinholeOption lens_from_fov(double horizontal_degrees, const PictureSize& picture) {
  const double half_width = picture.width / 2.0;
  const double focal = half_width / std::tan(horizontal_degrees * std::numbers::pi / 360.0);
  return {focal, focal, half_width, picture.height / 2.0, picture};
}

std::variant<CommandLine, int> parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  SubmitOptions submit;
  WatchOptions watch;
  StatusOptions status;
  ListOptions list;
  CancelOptions cancel;
  double timeout_s = 60;
  double wait_s = 0;

  CLI::App app("Turns a camera trajectory into video on a MeRoPE service.", "merope-cli");
  app.set_version_flag("--version", std::string("merope ") + MEROPE_VERSION);
  app.require_subcommand(0, 1);  // with (1) CLI11 would not say which word it does not know
  app.fallthrough();
  app.footer(kExitCodeHelp);
  app.add_option("--server", line.client.address, "Address of the service")->envname("MEROPE_SERVER")->capture_default_str();
  app.add_option("--timeout", timeout_s, "Limit of one call in seconds; waiting for a clip has none")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--wait-for-server", wait_s, "Wait so many seconds for a server that is not there yet")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--json", line.json, "One JSON object a line on standard output, fields as in generation.proto");

  auto* submit_app = app.add_subcommand("submit", "Queue a job, wait for it and write the clip");
  add_submit(*submit_app, submit);
  auto* watch_app = app.add_subcommand("watch", "Wait for a job that was submitted before and write its clip");
  watch_app->add_option("job", watch.job_id, "Id of the job")->required()->check(kId);
  add_follow(*watch_app, watch.follow);
  auto* status_app = app.add_subcommand("status", "Where a job stands");
  status_app->add_option("job", status.job_id, "Id of the job")->required()->check(kId);
  auto* list_app = app.add_subcommand("list", "The newest jobs first");
  list_app->add_option("--state", list.state, "Only jobs in this state")
      ->check(CLI::IsMember({"queued", "running", "succeeded", "failed", "cancelled", "expired"}));
  list_app->add_option("--limit", list.limit, "At most so many")->check(CLI::Range(1, 1000))->capture_default_str();
  auto* cancel_app = app.add_subcommand("cancel", "Ask a job to stop");
  cancel_app->add_option("job", cancel.job_id, "Id of the job")->required()->check(kId);
  auto* capabilities_app = app.add_subcommand("capabilities", "Models, limits, formats and workers of the service");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& failure) {
    std::fprintf(stderr, "merope-cli: %s (see --help)\n", failure.what());
    return static_cast<int>(kExitUsage);
  }
  line.client.call_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1e3));
  line.client.wait_for_server = std::chrono::milliseconds(static_cast<std::int64_t>(wait_s * 1e3));
  if (app.get_subcommands().empty()) {
    std::fputs("merope-cli: a subcommand is missing: submit, watch, status, list, cancel or capabilities (see --help)\n",
               stderr);
    return static_cast<int>(kExitUsage);
  }
  if (submit_app->parsed()) {
    line.command = submit;
  } else if (watch_app->parsed()) {
    line.command = watch;
  } else if (status_app->parsed()) {
    line.command = status;
  } else if (list_app->parsed()) {
    line.command = list;
  } else if (cancel_app->parsed()) {
    line.command = cancel;
  } else if (capabilities_app->parsed()) {
    line.command = CapabilitiesOptions{};
  }
  return line;
}

}  // namespace merope::cli
