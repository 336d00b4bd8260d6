// JobEventSource over Redis: one subscription for the wake-ups, XRANGE in a script for the entries.
#pragma once

#include <memory>
#include <utility>

#include "core/queue/job_queue.h"
#include "core/queue/redis/script_client.h"

namespace merope::queue::redis {

class RedisEventSource final : public JobEventSource {
 public:
  explicit RedisEventSource(std::shared_ptr<ScriptClient> client)
      : client_(std::move(client)), subscription_(client_->make_connection()) {}

  Result<EventBatch> read(const std::string& job_id, const Cursor& after, std::size_t max_entries) override;
  // Subscribes when it is called first and after each lost connection. While Redis is away the error comes after a pause of
  // up to a second, so that a caller may simply call again.
  Result<std::vector<std::string>> wait_for_wakeups(std::chrono::milliseconds timeout) override;
  void interrupt() override { interrupted_.signal(); }

 private:
  Status subscribe();

  std::shared_ptr<ScriptClient> client_;
  Connection subscription_;
  Wakeup interrupted_;
};

}  // namespace merope::queue::redis
