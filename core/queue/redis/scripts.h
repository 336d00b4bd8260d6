// The Lua scripts: every change of a job's state is one of them, so a crash never leaves half of a change. They state the
// rules of core/queue/memory_state.h in Lua; a differential test compares the two.
//
// Arguments: ARGV[1] the time in milliseconds ('' = Redis' own, always so in production), ARGV[2..7] lease, max_attempts,
// keep_job, keep_output (ms), max_queued, max_output_bytes of the caller; ARGV[8..] are the script's own, named above each in
// scripts.cc. A job keeps the limits of the server that accepted it: the worker, which ends most jobs, has only a lease set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace merope::queue::redis {

enum class Script : std::uint8_t {
  kSubmit,
  kClaim,
  kPut,
  kBeat,
  kFinish,
  kRelease,
  kCancel,
  kReconcile,
  kAnnounce,
  kGet,
  kList,
  kPlace,
  kStats,
  kWorkers,
  kModels,
  kRead,
};
inline constexpr std::size_t kScriptCount = static_cast<std::size_t>(Script::kRead) + 1;

// The whole text that goes to Redis.
std::string script_text(Script script);

}  // namespace merope::queue::redis
