#include "core/queue/redis/redis_submitter.h"

#include <algorithm>
#include <limits>

#include "core/queue/queue_errors.h"

namespace merope::queue::redis {
namespace {

// Scripts that return a single number.
Result<std::int64_t> sole_number(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_INTEGER) {
    return internal_error("the answer of a queue script is not a number");
  }
  return static_cast<std::int64_t>(reply.integer);
}

}  // namespace

Result<SubmitOutcome> RedisSubmitter::submit(const NewJob& job) {
  const std::string job_id = new_job_id_();
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply,
                          client_->run(Script::kSubmit,
                                       {job.request_id,
                                        job.digest,
                                        std::to_string(static_cast<int>(job.priority)),
                                        job.spec,
                                        job.input,
                                        std::to_string(job.max_queue_wait.count()),
                                        std::to_string(job.max_run_time.count()),
                                        job_id}));
  MEROPE_ASSIGN_OR_RETURN(const std::string_view answer, text_at(*reply, 0));
  if (answer == "reused") {
    return request_reused(job.request_id);
  }
  if (answer == "full") {
    return queue_full(client_->limits().max_queued);
  }
  if (answer == "memory") {
    MEROPE_ASSIGN_OR_RETURN(const std::int64_t used, number_at(*reply, 1));
    MEROPE_ASSIGN_OR_RETURN(const std::int64_t limit, number_at(*reply, 2));
    return Error{ErrorCode::kResourceExhausted,
                 "the queue's memory is nearly full: " + std::to_string(used) + " of " + std::to_string(limit) + " bytes"};
  }
  MEROPE_ASSIGN_OR_RETURN(const std::string_view accepted, text_at(*reply, 1));
  // A submission that was sent again after a cut connection meets itself: that is not a duplicate.
  return SubmitOutcome{std::string(accepted), answer == "duplicate" && accepted != job_id};
}

Result<JobRecord> RedisSubmitter::record_of(Script script, const std::string& job_id) {
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply, client_->run(script, {job_id}));
  MEROPE_ASSIGN_OR_RETURN(const std::string_view answer, text_at(*reply, 0));
  if (answer == "unknown") {
    return unknown_job(job_id);
  }
  MEROPE_ASSIGN_OR_RETURN(const redisReply* record, array_at(*reply, 1));
  return parse_record(*record);
}

Result<JobRecord> RedisSubmitter::cancel(const std::string& job_id) {
  return record_of(Script::kCancel, job_id);
}
Result<JobRecord> RedisSubmitter::get(const std::string& job_id) {
  return record_of(Script::kGet, job_id);
}

Result<std::vector<JobRecord>> RedisSubmitter::list(std::optional<JobState> state, std::size_t limit) {
  const std::string_view wanted = state ? to_string(*state) : std::string_view("");
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply, client_->run(Script::kList, {wanted, std::to_string(limit)}));
  std::vector<JobRecord> records;
  for (std::size_t i = 0; i < reply->elements; ++i) {
    MEROPE_ASSIGN_OR_RETURN(JobRecord record, parse_record(*reply->element[i]));
    records.push_back(std::move(record));
  }
  return records;
}

Result<std::uint32_t> RedisSubmitter::place(const std::string& job_id) {
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply, client_->run(Script::kPlace, {job_id}));
  MEROPE_ASSIGN_OR_RETURN(const std::int64_t before, sole_number(*reply));
  return static_cast<std::uint32_t>(before);
}

Result<QueueStats> RedisSubmitter::stats() {
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply, client_->run(Script::kStats, {}));
  MEROPE_ASSIGN_OR_RETURN(const std::int64_t queued, number_at(*reply, 0));
  MEROPE_ASSIGN_OR_RETURN(const std::int64_t running, number_at(*reply, 1));
  MEROPE_ASSIGN_OR_RETURN(const std::int64_t oldest, number_at(*reply, 2));
  QueueStats stats;
  stats.queued = static_cast<std::uint64_t>(queued);
  stats.running = static_cast<std::uint64_t>(running);
  stats.oldest_queued = std::chrono::milliseconds(oldest);
  return stats;
}

Result<std::vector<WorkerRecord>> RedisSubmitter::workers() {
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply, client_->run(Script::kWorkers, {}));
  std::vector<WorkerRecord> workers;
  for (std::size_t i = 0; i < reply->elements; ++i) {
    MEROPE_ASSIGN_OR_RETURN(const redisReply* worker, array_at(*reply, i));
    MEROPE_ASSIGN_OR_RETURN(const std::string_view name, text_at(*worker, 0));
    MEROPE_ASSIGN_OR_RETURN(const std::string_view announcement, text_at(*worker, 1));
    MEROPE_ASSIGN_OR_RETURN(const std::string_view current_job, text_at(*worker, 2));
    workers.push_back({std::string(name), std::string(announcement), std::string(current_job)});
  }
  return workers;
}

Result<std::vector<std::string>> RedisSubmitter::known_models() {
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply, client_->run(Script::kModels, {}));
  std::vector<std::string> announcements;
  for (std::size_t i = 0; i < reply->elements; ++i) {
    MEROPE_ASSIGN_OR_RETURN(const std::string_view announcement, text_at(*reply, i));
    announcements.emplace_back(announcement);
  }
  return announcements;
}

Result<std::size_t> RedisSubmitter::reconcile() {
  MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply, client_->run(Script::kReconcile, {}));
  MEROPE_ASSIGN_OR_RETURN(const std::int64_t changed, sole_number(*reply));
  return static_cast<std::size_t>(changed);
}

}  // namespace merope::queue::redis
