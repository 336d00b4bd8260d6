// Frames whose pixels are known, files for outside tools, and what those tools say.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/media/clip_writer.h"
#include "core/media/rgb_frames.h"

namespace merope::media::testing {

// Smooth colour waves that move from frame to frame; with `grain`, noise on top that no lossy codec keeps.
inline RgbFrames moving_waves(int n_frames, int width, int height, int grain = 0, int first = 0) {
  RgbFrames frames{n_frames, height, width, {}};
  frames.pixels.reserve(frames.frame_bytes() * static_cast<std::size_t>(n_frames));
  std::minstd_rand random(7);
  for (int t = first; t < first + n_frames; ++t) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < 3; ++c) {
          const double wave = std::sin(0.05 * x + 0.03 * (c + 1) * y + 0.2 * t + c);
          const int noise = grain == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(2 * grain + 1)) - grain;
          frames.pixels.push_back(static_cast<std::uint8_t>(128 + 90 * wave + noise));
        }
      }
    }
  }
  return frames;
}

inline constexpr std::array<std::array<int, 3>, 8> kBars = {
    {{235, 235, 235}, {191, 191, 0}, {0, 191, 191}, {0, 191, 0}, {191, 0, 191}, {191, 0, 0}, {0, 0, 191}, {16, 16, 16}}};

// Eight vertical bars of one colour each.
inline RgbFrames colour_bars(int n_frames, int width, int height) {
  RgbFrames frames{n_frames, height, width, {}};
  for (int i = 0; i < n_frames * height; ++i) {
    for (int x = 0; x < width; ++x) {
      for (const int value : kBars[static_cast<std::size_t>(x * 8 / width)]) {
        frames.pixels.push_back(static_cast<std::uint8_t>(value));
      }
    }
  }
  return frames;
}

inline double psnr(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += d * d;
  }
  return sum == 0 ? 100.0 : 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.size()) / sum);
}

struct WrittenClip {
  std::vector<ClipFragment> fragments;
  std::string file() const {
    std::string bytes;
    for (const ClipFragment& fragment : fragments) {
      bytes += fragment.bytes;
    }
    return bytes;
  }
};

// Removed with what is inside.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "merope_media_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return (path_ / name).string();
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path_ / name, std::ios::binary).rdbuf();
    return text.str();
  }
  std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

struct ToolOutput {
  int exit_code = -1;
  std::string text;    // stdout
  std::string errors;  // stderr
};

// Runs a shell command; our own file names only.
inline ToolOutput run_tool(const TempDir& dir, const std::string& command) {
  ToolOutput output;
  FILE* pipe = ::popen((command + " 2>" + dir.path("stderr")).c_str(), "r");
  std::array<char, 65536> buffer{};
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.text.append(buffer.data(), n);
  }
  const int state = ::pclose(pipe);
  output.exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  output.errors = dir.read("stderr");
  return output;
}

}  // namespace merope::media::testing
