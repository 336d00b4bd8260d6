// JobSubmitter over Redis: each call is one script.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/queue/job_queue.h"
#include "core/queue/redis/script_client.h"

namespace merope::queue::redis {

// Any thread may call it.
class RedisSubmitter final : public JobSubmitter {
 public:
  RedisSubmitter(std::shared_ptr<ScriptClient> client, std::function<std::string()> new_job_id)
      : client_(std::move(client)), new_job_id_(std::move(new_job_id)) {}

  Result<SubmitOutcome> submit(const NewJob& job) override;
  Result<JobRecord> cancel(const std::string& job_id) override;
  Result<JobRecord> get(const std::string& job_id) override;
  Result<std::vector<JobRecord>> list(std::optional<JobState> state, std::size_t limit) override;
  Result<std::uint32_t> place(const std::string& job_id) override;
  Result<QueueStats> stats() override;
  Result<std::vector<WorkerRecord>> workers() override;
  Result<std::vector<std::string>> known_models() override;
  Result<std::size_t> reconcile() override;

 private:
  Result<JobRecord> record_of(Script script, const std::string& job_id);

  std::shared_ptr<ScriptClient> client_;
  std::function<std::string()> new_job_id_;
};

}  // namespace merope::queue::redis
