// From a checkpoint's scheduler_config.json and a job's wishes to the list of solver steps. A new solver or sigma grid is
// registered in schedulers.cc and nowhere else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "proto/spec/generation_spec.h"
#include "worker/schedule/flow_sigmas.h"
#include "worker/schedule/solver_step.h"

namespace merope::worker {

struct SchedulerSettings {
  Solver solver = Solver::kUniPc;
  SigmaGrid grid = SigmaGrid::kUniPc;
  double shift = 1.0;
  int n_train_timesteps = 1000;
  int solver_order = 2;                // UniPC
  std::vector<int> disable_corrector;  // UniPC
};

// Scheduler classes of diffusers that are built.
std::vector<std::string> scheduler_classes();

// Reads a scheduler_config.json of one of those. A key that is absent has the published class's default; kInvalidArgument
// names everything that is malformed and every option with a value that changes the numbers in a way that is not built
// (karras sigmas, solver bh1, order 3, ...). Keys that do not matter on the flow path are ignored. One key is ours:
// "sigma_grid" names another grid than the class's usual one.
Result<SchedulerSettings> parse_scheduler_config(std::string_view json);

// The checkpoint's settings with a job's solver, grid and shift. Without a grid, another solver than the checkpoint's brings
// its usual one.
SchedulerSettings with_request(SchedulerSettings settings, Solver solver, std::optional<SigmaGrid> grid, double shift);

// kInvalidArgument for numbers out of range, or for a grid the solver cannot walk.
Result<SamplingPlan> make_sampling_plan(const SchedulerSettings& settings, int steps);

}  // namespace merope::worker
