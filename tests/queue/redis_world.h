// The server behind make_redis_world(), for tests that look into it.
#pragma once

#include "tests/support/redis_server.h"

namespace merope::queue {

test::RedisServer& redis_world_server();

}  // namespace merope::queue
