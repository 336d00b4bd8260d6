// What a job asks for, as a plain struct: checked, with every default filled in, in the house's own conventions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/camera/trajectory.h"

namespace merope {

enum class Solver { kUniPc, kEuler, kDpm2M };

// Published pipelines space the N noise levels of a run differently; with few steps the difference is visible, so each
// spacing has a name. shift(s) = k s / (1 + (k - 1) s), k the shift; i = 0 .. N-1; T the number of training timesteps
// (1000).
enum class SigmaGrid {
  kUniPc,        // shift(1 - (1 - 1/T) i/N), the first lowered from 1 to 1 - 1e-6: diffusers' UniPC since 0.37
  kUniPcLegacy,  // shift((1 - 1/T)(1 - i/N)): diffusers' UniPC up to 0.36, and its DPM++
  kWanUniPc,     // kUniPcLegacy with 1 - 1/T rounded to fp32 first: the original Wan code
  kWanDpm,       // shift(1 - i/N): the original Wan code's dpm++ option
  kEuler,        // shift(linspace(1, shift(1/T), N)): diffusers' flow-match Euler, whose last sigma is shifted twice
};

// UniPC cannot start from sigma = 1, where its first step would be infinitely long.
constexpr bool can_walk(Solver solver, SigmaGrid grid) {
  return solver != Solver::kUniPc || (grid != SigmaGrid::kWanDpm && grid != SigmaGrid::kEuler);
}

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
  std::optional<SigmaGrid> sigma_grid;  // none: the checkpoint's, or the usual one of another solver; can_walk(solver, it)
  camera::Trajectory trajectory;        // one frame per RGB frame; lenses refer to width x height
  int n_conditioning_frames = 0;        // 0 or 4n+1, less than n_frames
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
