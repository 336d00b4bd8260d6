// The command line of merope-cli as plain structs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/client_options.h"
#include "core/base/result.h"

namespace merope::cli {

// Width and height in pixels.
struct PictureSize {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool operator==(const PictureSize&) const = default;
};

// fx, fy, cx, cy in pixels of a picture of this size.
struct PinholeOption {
  double fx = 0;
  double fy = 0;
  double cx = 0;
  double cy = 0;
  PictureSize picture;
  bool operator==(const PinholeOption&) const = default;
};

// "512x288".
Result<PictureSize> parse_size(const std::string& text);
// "pinhole:fx,fy,cx,cy,w,h".
Result<PinholeOption> parse_lens(const std::string& text);
// A pinhole whose picture spans so many degrees from left to right, with square pixels and the centre in the middle.
PinholeOption lens_from_fov(double horizontal_degrees, const PictureSize& picture);

// Where the clip goes and what Ctrl-C does while it is waited for.
struct FollowOptions {
  std::string out;  // empty: <job id>.mp4, or the folder <job id> for PNG frames
  bool cancel_on_interrupt = false;
};

struct SubmitOptions {
  std::string trajectory_file;  // exactly one of this and shape
  std::string format = "auto";
  std::string shape;
  std::uint32_t first = 0;            // index of the file's first pose to use
  std::optional<PinholeOption> lens;  // at most one of this and fov_deg
  std::optional<double> fov_deg;

  std::optional<std::uint32_t> frames;
  std::optional<std::uint32_t> fps;
  std::optional<PictureSize> size;
  std::optional<std::uint64_t> seed;
  std::optional<std::uint32_t> steps;
  std::optional<double> guidance;
  std::optional<double> shift;
  std::string solver;      // empty: the checkpoint's
  std::string sigma_grid;  // empty: the checkpoint's or the solver's usual one
  std::string model;
  std::string encoding;
  std::string prompt;
  std::string negative_prompt;

  std::vector<std::string> images;  // at most one of this and clip
  std::string clip;
  std::optional<std::uint32_t> clip_frames;

  std::string output = "h264";
  std::string priority = "normal";
  std::optional<double> max_queue_wait_s;
  std::optional<double> max_run_time_s;
  std::string request_id;

  bool detach = false;
  FollowOptions follow;
};

struct WatchOptions {
  std::string job_id;
  FollowOptions follow;
};

struct StatusOptions {
  std::string job_id;
};

struct ListOptions {
  std::string state;  // empty: all
  std::uint32_t limit = 20;
};

struct CancelOptions {
  std::string job_id;
};

struct CapabilitiesOptions {};

struct CommandLine {
  client::ClientOptions client;
  bool json = false;
  std::variant<SubmitOptions, WatchOptions, StatusOptions, ListOptions, CancelOptions, CapabilitiesOptions> command;
};

// A command, or the exit code after --help, --version or a sentence about what is wrong.
std::variant<CommandLine, int> parse_command_line(int argc, const char* const* argv);

}  // namespace merope::cli
