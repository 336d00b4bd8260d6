// Asks a local program whether it is ready. Each call answers within a second.
#pragma once

#include <string>

#include "core/base/result.h"

namespace merope::standalone {

// A Redis on a Unix socket answers PING with PONG (it does not while it still loads its file).
bool redis_answers(const std::string& socket_path);
// GET http://host:port/readyz gives 200.
bool http_is_ready(const std::string& host, int port);
// A port of this host that nobody listens on at this moment.
Result<int> free_port(const std::string& host);

}  // namespace merope::standalone
