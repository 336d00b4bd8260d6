// What a person sees while a job runs: a bar that redraws itself on a terminal, a few plain lines elsewhere.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "merope/v1/generation.pb.h"

namespace merope::cli {

// "denoise".
std::string_view stage_name(v1::Stage stage);
// "42 s", "3:07 min", "1:02 h".
std::string duration_text(double seconds);
// "812 bytes", "3.1 MB".
std::string bytes_text(double bytes);

// Pure: returns the text to write to the terminal, does not write it.
class ProgressView {
 public:
  // columns: width of the terminal; 0 = no terminal, plain lines.
  explicit ProgressView(int columns) : columns_(columns) {}

  // Text to append after this event; empty when there is nothing new to show.
  std::string update(const v1::JobEvent& event);
  std::string reattach(const Error& reason, std::chrono::milliseconds pause);
  // Ends the line that is being redrawn, so that other text can follow.
  std::string clear();

 private:
  std::string show(const std::string& line);
  std::string say(const std::string& line);
  std::string progress(const v1::Progress& progress);

  const int columns_;
  bool drawn_ = false;  // a line without its end is on the terminal
  std::string last_;
  v1::Stage stage_ = v1::STAGE_UNSPECIFIED;
  int tenth_ = -1;  // of the stage, the last one shown as a plain line
};

}  // namespace merope::cli
