#include "worker/schedule/schedulers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "worker/schedule/dpm_2m.h"
#include "worker/schedule/euler.h"
#include "worker/schedule/unipc.h"

namespace merope::worker {
namespace {

using Json = nlohmann::json;

Result<SamplingPlan> checked_unipc(const SchedulerSettings& settings, const NoiseLevels& levels) {
  if (levels.sigmas.front() >= 1) {
    return invalid_argument("sigma grid " + std::string(to_string(settings.grid)) +
                            " starts at sigma = 1, where UniPC is not defined");
  }
  if (settings.solver_order != 1 && settings.solver_order != 2) {
    return invalid_argument("solver_order is " + std::to_string(settings.solver_order) + ", UniPC is built for 1 and 2");
  }
  return plan_unipc(levels, {.order = settings.solver_order, .disable_corrector = settings.disable_corrector});
}

// Reads keys with defaults and remembers every problem.
class ConfigReader {
 public:
  explicit ConfigReader(const Json& json) : json_(json) {}

  template <typename T>
  T value(const char* key, T fallback) {
    const auto it = json_.find(key);
    if (it == json_.end() || it->is_null()) {
      return fallback;
    }
    const bool right_kind = std::is_same_v<T, bool>          ? it->is_boolean()
                            : std::is_same_v<T, std::string> ? it->is_string()
                            : std::is_integral_v<T>          ? it->is_number_integer()
                                                             : it->is_number();
    if (!right_kind) {
      problem(key, "is " + it->dump() + ", which is of the wrong kind");
      return fallback;
    }
    return it->get<T>();
  }

  template <typename T>
  void require(const char* key, T wanted, T published_default) {
    const T found = value<T>(key, published_default);
    if (found != wanted) {
      problem(key, "is " + Json(found).dump() + ", only " + Json(wanted).dump() + " is supported");
    }
  }

  // The key must be absent, null or false.
  void refuse(const char* key) {
    const auto it = json_.find(key);
    if (it != json_.end() && !it->is_null() && *it != Json(false)) {
      problem(key, "is " + it->dump() + ", which is not supported");
    }
  }

  std::vector<int> integers(const char* key) {
    std::vector<int> numbers;
    const auto it = json_.find(key);
    if (it == json_.end() || it->is_null()) {
      return numbers;
    }
    for (const Json& item : it->is_array() ? *it : Json::array({*it})) {
      if (!it->is_array() || !item.is_number_integer()) {
        problem(key, "holds " + item.dump() + ", it must be a list of integers");
        return {};
      }
      numbers.push_back(item.get<int>());
    }
    return numbers;
  }

  const std::string& problems() const { return problems_; }

 private:
  void problem(const char* key, const std::string& what) {
    problems_ += (problems_.empty() ? "" : "; ") + std::string(key) + " " + what;
  }

  const Json& json_;
  std::string problems_;
};

// What the two multistep schedulers have in common.
void read_multistep(ConfigReader& reader, SchedulerSettings& settings) {
  settings.shift = reader.value<double>("flow_shift", 1.0);
  reader.require<bool>("use_flow_sigmas", true, false);
  reader.require<std::string>("prediction_type", "flow_prediction", "epsilon");
  reader.require<std::string>("final_sigmas_type", "zero", "zero");
  reader.refuse("thresholding");
}

void read_unipc(ConfigReader& reader, SchedulerSettings& settings) {
  read_multistep(reader, settings);
  settings.solver_order = reader.value<int>("solver_order", 2);
  settings.disable_corrector = reader.integers("disable_corrector");
  reader.require<std::string>("solver_type", "bh2", "bh2");
  reader.require<bool>("predict_x0", true, true);
  reader.require<bool>("lower_order_final", true, true);
  reader.refuse("solver_p");
  reader.refuse("shift_terminal");
}

// With a final sigma of zero the last step is of first order whatever lower_order_final and euler_at_final say.
void read_dpm(ConfigReader& reader, SchedulerSettings& settings) {
  read_multistep(reader, settings);
  reader.require<int>("solver_order", 2, 2);
  reader.require<std::string>("algorithm_type", "dpmsolver++", "dpmsolver++");
  reader.require<std::string>("solver_type", "midpoint", "midpoint");
  reader.refuse("use_lu_lambdas");
}

void read_euler(ConfigReader& reader, SchedulerSettings& settings) {
  settings.shift = reader.value<double>("shift", 1.0);
  for (const char* key : {"shift_terminal", "invert_sigmas", "stochastic_sampling"}) {
    reader.refuse(key);
  }
}

// Python writes infinities and NaN as bare words, which are no JSON; diffusers' DPM++ has one such default. No value that is
// read here may be one of them, so they become null.
std::string without_bare_words(std::string_view text) {
  std::string json;
  bool in_string = false;
  while (!text.empty()) {
    std::size_t length = 1;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      length = !in_string && text.starts_with(word) ? std::max(length, word.size()) : length;
    }
    if (length > 1) {
      json += "null";
    } else {
      length = in_string && text[0] == '\\' && text.size() > 1 ? 2 : 1;
      in_string = text[0] == '"' ? !in_string : in_string;
      json += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return json;
}

struct SchedulerEntry {
  Solver solver;
  std::string_view class_name;  // in scheduler_config.json
  SigmaGrid usual_grid;
  void (*read)(ConfigReader&, SchedulerSettings&);
  Result<SamplingPlan> (*plan)(const SchedulerSettings&, const NoiseLevels&);
};

constexpr SchedulerEntry kSchedulers[] = {
    {Solver::kUniPc, "UniPCMultistepScheduler", SigmaGrid::kUniPc, &read_unipc, &checked_unipc},
    {Solver::kDpm2M,
     "DPMSolverMultistepScheduler",
     SigmaGrid::kUniPcLegacy,
     &read_dpm,
     [](const SchedulerSettings&, const NoiseLevels& levels) -> Result<SamplingPlan> { return plan_dpm_2m(levels); }},
    {Solver::kEuler,
     "FlowMatchEulerDiscreteScheduler",
     SigmaGrid::kEuler,
     &read_euler,
     [](const SchedulerSettings&, const NoiseLevels& levels) -> Result<SamplingPlan> { return plan_euler(levels); }},
};

const SchedulerEntry& entry_of(Solver solver) {
  const auto* const entry = std::ranges::find(kSchedulers, solver, &SchedulerEntry::solver);
  MEROPE_CHECK(entry != std::end(kSchedulers), "every solver of the job format is registered");
  return *entry;
}

}  // namespace

std::vector<std::string> scheduler_classes() {
  std::vector<std::string> names;
  for (const SchedulerEntry& entry : kSchedulers) {
    names.emplace_back(entry.class_name);
  }
  return names;
}

Result<SchedulerSettings> parse_scheduler_config(std::string_view text) {
  const Json json = Json::parse(without_bare_words(text), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return invalid_argument("scheduler config is no JSON object");
  }
  ConfigReader reader(json);
  const auto class_name = reader.value<std::string>("_class_name", "");
  const auto* const known = std::ranges::find(kSchedulers, class_name, &SchedulerEntry::class_name);
  if (known == std::end(kSchedulers)) {
    std::string supported;
    for (const std::string& name : scheduler_classes()) {
      supported += (supported.empty() ? "" : ", ") + name;
    }
    return invalid_argument("_class_name is '" + class_name + "', supported are " + supported);
  }
  SchedulerSettings settings;
  settings.solver = known->solver;
  settings.n_train_timesteps = reader.value<int>("num_train_timesteps", 1000);
  const auto grid_name = reader.value<std::string>("sigma_grid", std::string(to_string(known->usual_grid)));
  const std::optional<SigmaGrid> grid = parse_sigma_grid(grid_name);
  settings.grid = grid.value_or(known->usual_grid);
  known->read(reader, settings);
  for (const char* key : {"use_karras_sigmas", "use_exponential_sigmas", "use_beta_sigmas", "use_dynamic_shifting"}) {
    reader.refuse(key);
  }
  if (!reader.problems().empty()) {
    return invalid_argument(class_name + ": " + reader.problems());
  }
  if (!grid) {
    return invalid_argument(class_name + ": sigma_grid is '" + grid_name + "', which is unknown");
  }
  // One cheap plan finds what is out of range, so that a loaded checkpoint's settings are usable.
  const Result<SamplingPlan> trial = make_sampling_plan(settings, 1);
  if (!trial) {
    return invalid_argument(class_name + ": " + trial.error().message);
  }
  return settings;
}

SchedulerSettings with_request(SchedulerSettings settings, Solver solver, std::optional<SigmaGrid> grid, double shift) {
  if (grid) {
    settings.grid = *grid;
  } else if (solver != settings.solver) {
    settings.grid = entry_of(solver).usual_grid;
  }
  settings.solver = solver;
  settings.shift = shift;
  return settings;
}

Result<SamplingPlan> make_sampling_plan(const SchedulerSettings& settings, int steps) {
  MEROPE_ASSIGN_OR_RETURN(const NoiseLevels levels,
                          make_noise_levels(settings.grid, steps, settings.shift, settings.n_train_timesteps));
  return entry_of(settings.solver).plan(settings, levels);
}

}  // namespace merope::worker
