#include "worker/app/stream_writer.h"

#include <algorithm>

#include "core/base/log.h"

namespace merope::worker {

StreamWriter::StreamWriter(queue::JobConsumer& consumer, JobLease& lease, WorkerMetrics& metrics, RetryDelays delays)
    : consumer_(consumer), lease_(lease), metrics_(metrics), delays_(delays) {}

// Calls until the queue answers or the lease is over. A cancelled job is written to only to end it.
template <typename Call>
Result<queue::LeaseAnswer> StreamWriter::patiently(bool even_if_cancelled, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::milliseconds delay = delays_.first;
  Result<queue::LeaseAnswer> answer = queue::LeaseAnswer::kFenced;
  while (true) {
    const LeaseLoss loss = lease_.loss();
    if (loss == LeaseLoss::kCancelled && !even_if_cancelled) {
      answer = queue::LeaseAnswer::kCancelled;
      break;
    }
    if (loss != LeaseLoss::kNone && loss != LeaseLoss::kCancelled) {
      answer = queue::LeaseAnswer::kFenced;
      break;
    }
    answer = call();
    if (answer) {
      lease_.answered(*answer);
      break;
    }
    if (answer.error().code != ErrorCode::kUnavailable) {
      break;
    }
    if (delay == delays_.first) {
      log::warn("queue does not take a write, trying again until the lease ends",
                {{"job", lease_.job().job_id}, {"epoch", lease_.job().epoch}, {"reason", answer.error().message}});
    }
    metrics_.put_retries.increment();
    lease_.wait_to_retry(delay);
    delay = std::min(delay * 2, delays_.longest);
  }
  seconds_ += seconds_between(begin, std::chrono::steady_clock::now());
  return answer;
}

Status StreamWriter::put(std::string_view bytes) {
  MEROPE_ASSIGN_OR_RETURN(const queue::LeaseAnswer answer, patiently(false, [&] {
                            auto put = consumer_.put(lease_.job(), next_seq_, bytes);
                            unanswered_ = !put && put.error().code == ErrorCode::kUnavailable;
                            return put;
                          }));
  if (answer != queue::LeaseAnswer::kOk) {
    return lease_.status();
  }
  ++next_seq_;
  return {};
}

Result<queue::LeaseAnswer> StreamWriter::finish(queue::JobState state,
                                                std::string_view bytes,
                                                std::int32_t code,
                                                std::string_view message) {
  return patiently(true, [&] {
    auto answer = consumer_.finish(lease_.job(), state, next_seq_, bytes, code, message);
    if (!answer && answer.error().code != ErrorCode::kUnavailable && unanswered_) {
      unanswered_ = false;  // the entry before this one had arrived
      ++next_seq_;
      answer = consumer_.finish(lease_.job(), state, next_seq_, bytes, code, message);
    }
    return answer;
  });
}

Result<queue::LeaseAnswer> StreamWriter::release() {
  return patiently(true, [&] { return consumer_.release(lease_.job()); });
}

}  // namespace merope::worker
