#include "client/cli/progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

namespace merope::cli {
namespace {

constexpr int kBarWidth = 30;
constexpr int kPlainLinesPerStage = 10;

std::string bar(double share) {
  const int full = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * kBarWidth));
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(kBarWidth - full), '.') + "]";
}

}  // namespace

std::string_view stage_name(v1::Stage stage) {
  switch (stage) {
    case v1::STAGE_PREPARE: return "prepare";
    case v1::STAGE_TEXT: return "text";
    case v1::STAGE_ENCODE: return "encode";
    case v1::STAGE_DENOISE: return "denoise";
    case v1::STAGE_DECODE: return "decode";
    default: return "work";
  }
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(std::max(0.0, seconds)));
  if (whole < 60) {
    return fmt::format("{} s", whole);
  }
  if (whole < 3600) {
    return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  }
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

std::string bytes_text(double bytes) {
  if (bytes < 1e3) {
    return fmt::format("{:.0f} bytes", bytes);
  }
  if (bytes < 1e6) {
    return fmt::format("{:.1f} kB", bytes / 1e3);
  }
  return bytes < 1e9 ? fmt::format("{:.1f} MB", bytes / 1e6) : fmt::format("{:.2f} GB", bytes / 1e9);
}

std::string ProgressView::update(const v1::JobEvent& event) {
  switch (event.event_case()) {
    case v1::JobEvent::kAccepted:
      return say(fmt::format("{} {}", event.job_id(), event.accepted().duplicate() ? "was accepted before" : "accepted"));
    case v1::JobEvent::kQueued: {
      const std::uint32_t place = event.queued().place();
      return show(place == 0 ? "queued, next to be served" : fmt::format("queued, {} before it", place));
    }
    case v1::JobEvent::kStarted: {
      const v1::Started& started = event.started();
      const std::string attempt = started.attempt() > 1 ? fmt::format(", attempt {}", started.attempt()) : "";
      return say(fmt::format("started on {}{}", started.worker(), attempt));
    }
    case v1::JobEvent::kProgress: return progress(event.progress());
    case v1::JobEvent::kRestarted: stage_ = v1::STAGE_UNSPECIFIED; return say("the worker was lost; the job begins again");
    case v1::JobEvent::kFinished:
    case v1::JobEvent::kFailed: return clear();
    default: return "";
  }
}

std::string ProgressView::progress(const v1::Progress& progress) {
  const std::uint32_t steps = std::max(1U, progress.steps());
  const double share = std::min(1.0, static_cast<double>(progress.step()) / steps);
  const std::string left =
      progress.has_seconds_left() ? fmt::format("  {} left", duration_text(progress.seconds_left())) : "";
  if (columns_ > 0) {
    return show(
        fmt::format("{:<8} {} {}/{}{}", stage_name(progress.stage()), bar(share), progress.step(), progress.steps(), left));
  }
  const int tenth = static_cast<int>(share * kPlainLinesPerStage);
  if (progress.stage() == stage_ && tenth <= tenth_) {
    return "";
  }
  stage_ = progress.stage();
  tenth_ = tenth;
  return show(fmt::format("{} {}/{}{}", stage_name(progress.stage()), progress.step(), progress.steps(), left));
}

std::string ProgressView::reattach(const Error& reason, std::chrono::milliseconds pause) {
  return say(
      fmt::format("lost the server ({}); again in {:.1f} s", reason.message, static_cast<double>(pause.count()) / 1e3));
}

std::string ProgressView::clear() {
  last_.clear();
  return std::exchange(drawn_, false) ? "\r\x1b[K" : "";
}

// A state that the next one replaces.
std::string ProgressView::show(const std::string& line) {
  if (line == last_) {
    return "";
  }
  last_ = line;
  if (columns_ <= 0) {
    return line + "\n";
  }
  drawn_ = true;
  return "\r\x1b[K" + line.substr(0, static_cast<std::size_t>(std::max(1, columns_ - 1)));
}

// A line that stays.
std::string ProgressView::say(const std::string& line) {
  return clear() + line + "\n";
}

}  // namespace merope::cli
