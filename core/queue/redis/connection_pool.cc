#include "core/queue/redis/connection_pool.h"

namespace merope::queue::redis {

Connection ConnectionPool::take() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    return make();
  }
  Connection connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

void ConnectionPool::give_back(Connection connection) {
  if (!connection.is_open()) {
    return;
  }
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kKept) {
    idle_.push_back(std::move(connection));
  }
}

}  // namespace merope::queue::redis
