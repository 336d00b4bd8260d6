// JobConsumer over Redis. A claim is one script; when it finds nothing, an XREAD blocks on the streams until one of them has
// something newer, and the script runs again. The blocking read takes nothing from the consumer group, so a worker that dies
// while it waits, or whose wait is cut off, holds no entry.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/queue/job_queue.h"
#include "core/queue/redis/script_client.h"

namespace merope::queue::redis {

// claim() from one thread at a time, everything else from any.
class RedisConsumer final : public JobConsumer {
 public:
  RedisConsumer(std::shared_ptr<ScriptClient> client, std::string worker)
      : client_(std::move(client)), worker_(std::move(worker)), doorbell_(client_->make_connection()) {}

  // While Redis is away it is tried again until the timeout; only then comes the error.
  Result<std::optional<ClaimedJob>> claim(std::chrono::milliseconds timeout, std::stop_token stop) override;
  Result<LeaseAnswer> put(const ClaimedJob& job, std::uint64_t seq, std::string_view bytes) override;
  Result<LeaseAnswer> beat(const ClaimedJob& job) override;
  Result<LeaseAnswer> finish(const ClaimedJob& job,
                             JobState state,
                             std::uint64_t seq,
                             std::string_view bytes,
                             std::int32_t code,
                             std::string_view message) override;
  Result<LeaseAnswer> release(const ClaimedJob& job) override;
  Status announce(const std::string& model, std::string_view announcement, const std::string& current_job) override;

 private:
  // Waits for the bell: something newer than `none`, the answer of an empty claim, has in its streams.
  Status wait_for_work(const redisReply& none, std::chrono::milliseconds timeout, const Wakeup& stopped);

  std::shared_ptr<ScriptClient> client_;
  std::string worker_;
  Connection doorbell_;
  // Names a claim until its answer has come. A claim that Redis carried out but whose answer was lost is then answered
  // again, instead of leaving a job with nobody until its lease ends.
  std::string claim_token_;
};

}  // namespace merope::queue::redis
