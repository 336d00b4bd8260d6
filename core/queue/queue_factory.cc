#include "core/queue/queue_factory.h"

#include <utility>

#include "core/base/ids.h"
#include "core/queue/redis/redis_consumer.h"
#include "core/queue/redis/redis_event_source.h"
#include "core/queue/redis/redis_submitter.h"

namespace merope::queue {

RedisQueue::RedisQueue(std::shared_ptr<redis::ScriptClient> client, std::function<std::string()> new_job_id)
    : client_(std::move(client)), new_job_id_(std::move(new_job_id)) {}
RedisQueue::~RedisQueue() = default;

std::unique_ptr<JobSubmitter> RedisQueue::submitter() {
  return std::make_unique<redis::RedisSubmitter>(client_, new_job_id_);
}
std::unique_ptr<JobConsumer> RedisQueue::consumer(const std::string& worker) {
  return std::make_unique<redis::RedisConsumer>(client_, worker);
}
std::unique_ptr<JobEventSource> RedisQueue::events() {
  return std::make_unique<redis::RedisEventSource>(client_);
}
Status RedisQueue::ping() {
  return client_->ping();
}

Result<std::unique_ptr<RedisQueue>> make_queue(std::string_view url, RedisQueueOptions options) {
  MEROPE_ASSIGN_OR_RETURN(redis::Address address, redis::parse_address(url));
  auto client = std::make_shared<redis::ScriptClient>(std::move(address),
                                                      redis::Timeouts{options.connect_timeout, options.command_timeout},
                                                      options.limits,
                                                      std::move(options.now_ms));
  if (!options.new_job_id) {
    options.new_job_id = [] { return random_id("job"); };
  }
  return std::unique_ptr<RedisQueue>(new RedisQueue(std::move(client), std::move(options.new_job_id)));
}

Result<std::unique_ptr<RedisQueue>> open_queue(std::string_view url, RedisQueueOptions options) {
  MEROPE_ASSIGN_OR_RETURN(std::unique_ptr<RedisQueue> queue, make_queue(url, std::move(options)));
  MEROPE_RETURN_IF_ERROR(queue->ping());
  return queue;
}

}  // namespace merope::queue
