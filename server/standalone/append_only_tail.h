// Cuts off what a crash left half-written at the end of Redis' append-only file.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"

namespace merope::standalone {

// Redis repairs such a file itself when it loads it, but only up to the last whole command. A script that wrote several keys
// stands there as MULTI ... EXEC; when the crash came in the middle, Redis 7.0 drops its effects and leaves the MULTI open, so
// that everything written afterwards belongs to a transaction without an end, and is lost at the start after next. Here the
// cut goes before the MULTI.
//
// Looks at the last incremental file of the multi-part log in `folder` (Redis' appenddirname, files appendonly.aof.*).
// Returns how many bytes were cut: 0 for a whole file, for none, and for one that is damaged in another way, which Redis will
// refuse. Not while Redis runs. kInvalidArgument when a file can not be read or cut.
Result<std::uint64_t> cut_torn_tail(const std::string& folder);

}  // namespace merope::standalone
