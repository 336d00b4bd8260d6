// What an operator can set on merope-worker. Flags have the names of the fields with dashes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/base/admin_http.h"
#include "core/base/log.h"

namespace merope::worker {

struct WorkerConfig {
  std::string model;             // folder in the diffusers layout; required
  std::string device = "cpu";    // cpu, cuda, cuda:<n>
  int threads = 0;               // of the CPU kernels and ATen; 0 = one per core
  std::string experts = "auto";  // auto, both, one: resident transformers of a model of two
  std::string name;              // one per process; empty = host name and process number
  AdminConfig admin = {"127.0.0.1", 9465};

  std::string redis_url = "redis://127.0.0.1:6379";
  std::chrono::milliseconds lease{30'000};         // silent for so long: the job is another's
  std::chrono::milliseconds drain{60'000};         // a running job may go on so long after a stop signal
  std::chrono::milliseconds stall_limit{600'000};  // the engine may take so long for one step

  int encoder_threads = 1;      // another number gives other bytes of the same clip
  int frames_per_fragment = 8;  // frames that a client waits for at most; the distance of key frames

  log::Config log;

  // Everything that does not fit, with the flag's name; empty when all is well.
  std::vector<std::string> problems() const;
};

// Reads flags, environment and file. An exit code when the program is to end now.
std::optional<int> read_config(int argc, const char* const* argv, WorkerConfig& config);

}  // namespace merope::worker
