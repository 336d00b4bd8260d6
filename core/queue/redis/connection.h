// One connection to Redis that dials when it is needed. After anything but a reply (a timeout, a closed socket) the context
// is thrown away, because a late reply would be taken for the answer of the next command.
//
// The process must ignore SIGPIPE: hiredis writes with write(2).
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/queue/redis/address.h"
#include "core/queue/redis/handles.h"

namespace merope::queue::redis {

struct Timeouts {
  std::chrono::milliseconds connect{2'000};
  std::chrono::milliseconds command{5'000};
};

// Used by one thread at a time.
class Connection {
 public:
  Connection(Address address, Timeouts timeouts) : address_(std::move(address)), timeouts_(timeouts) {}

  // Sends a command and waits for its reply, which may be an error of Redis. When a connection that was used before turns
  // out to be closed, the command is sent again over a new one: the caller only sends what may be repeated. Errors:
  // kUnavailable.
  Result<ReplyPtr> command(std::span<const std::string_view> arguments);

  // Sends without waiting; next() fetches the replies. For commands that block, and for subscriptions.
  Status send(std::span<const std::string_view> arguments);
  // The next reply. Null: none within `timeout`, or `interrupt` was signalled. Errors: kUnavailable.
  Result<ReplyPtr> next(std::chrono::milliseconds timeout, const Wakeup& interrupt);

  bool is_open() const { return context_ != nullptr; }
  void close() { context_.reset(); }

  // The Error for a reply that is one: what a caller may try again is kUnavailable or kResourceExhausted, and Redis' own
  // words stay in the message. Closes the connection when a replica answered.
  Error error_of(const redisReply& reply);

 private:
  Status dial();
  Error lost(const std::string& why);
  Result<ReplyPtr> exchange(std::span<const std::string_view> arguments);

  Address address_;
  Timeouts timeouts_;
  ContextPtr context_;
};

inline bool is_error(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ERROR;
}
// Whether an error reply starts with this word, such as NOSCRIPT.
bool has_error_code(const redisReply& reply, std::string_view code);

}  // namespace merope::queue::redis
