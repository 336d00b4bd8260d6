// What a job asks for, as a plain struct: checked, with every default filled in, in the house's own conventions.
#pragma once

#include <cstdint>
#include <string>

#include "core/camera/trajectory.h"

namespace merope {

enum class Solver { kUniPc, kEuler };
enum class OutputFormat { kH264, kRgbExact, kPngFrames };

// Everything is valid by construction of proto/wire: sizes are positive multiples, frames = 4n+1 = trajectory frames.
struct GenerationSpec {
  std::string model;
  std::string encoding;
  std::string prompt;
  std::string negative_prompt;
  int width = 0;   // pixels
  int height = 0;  // pixels
  int n_frames = 0;
  int fps = 0;
  std::uint64_t seed = 0;
  int steps = 0;
  double guidance_scale = 1.0;  // 1 = off
  double shift = 1.0;
  Solver solver = Solver::kUniPc;
  camera::Trajectory trajectory;  // one frame per RGB frame; lenses refer to width x height
  int n_conditioning_frames = 0;  // 0 or 4n+1, less than n_frames
  OutputFormat output = OutputFormat::kH264;
};

// What a model is and which defaults it brings: what a worker announces and the server validates against.
struct ModelDescription {
  std::string name;
  std::string architecture;  // "Wan2.2-TI2V"
  std::vector<std::string> encodings;
  int size_multiple = 32;
  int default_width = 0;
  int default_height = 0;
  int default_fps = 24;
  int default_steps = 50;
  double default_guidance_scale = 5.0;
  double default_shift = 5.0;
  Solver default_solver = Solver::kUniPc;
  bool trained = true;  // false: deterministic weights whose pictures mean nothing
};

}  // namespace merope
