// Connections for calls from any thread: each call borrows one for a single round trip.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/queue/redis/connection.h"

namespace merope::queue::redis {

// Internally locked. Opens as many connections as there are calls at once and keeps a few of them.
class ConnectionPool {
 public:
  ConnectionPool(Address address, Timeouts timeouts) : address_(std::move(address)), timeouts_(timeouts) {}

  // Runs `call` with a connection that nobody else uses.
  template <typename Call>
  auto with_connection(Call call) {
    Connection connection = take();
    auto result = call(connection);
    give_back(std::move(connection));
    return result;
  }

  // A connection of the caller's own, for commands that block.
  Connection make() const { return Connection(address_, timeouts_); }

 private:
  static constexpr std::size_t kKept = 8;

  Connection take();
  void give_back(Connection connection);

  Address address_;
  Timeouts timeouts_;
  std::mutex mutex_;
  std::vector<Connection> idle_;
};

}  // namespace merope::queue::redis
