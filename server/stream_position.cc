#include "server/stream_position.h"

#include <utility>

#include <fmt/core.h>

#include "proto/wire/job_codec.h"

namespace merope::server {

v1::JobState to_v1(queue::JobState state) {
  switch (state) {
    case queue::JobState::kQueued: return v1::JOB_STATE_QUEUED;
    case queue::JobState::kRunning: return v1::JOB_STATE_RUNNING;
    case queue::JobState::kSucceeded: return v1::JOB_STATE_SUCCEEDED;
    case queue::JobState::kFailed: return v1::JOB_STATE_FAILED;
    case queue::JobState::kCancelled: return v1::JOB_STATE_CANCELLED;
    case queue::JobState::kExpired: return v1::JOB_STATE_EXPIRED;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

v1::Job to_v1(const queue::JobRecord& record) {
  v1::Job job;
  job.set_job_id(record.job_id);
  job.set_request_id(record.request_id);
  job.set_state(to_v1(record.state));
  switch (record.priority) {
    case queue::Priority::kHigh: job.set_priority(v1::PRIORITY_HIGH); break;
    case queue::Priority::kNormal: job.set_priority(v1::PRIORITY_NORMAL); break;
    case queue::Priority::kLow: job.set_priority(v1::PRIORITY_LOW); break;
  }
  job.set_attempts(record.attempts);
  job.set_epoch(record.epoch);
  job.set_worker(record.worker);
  job.set_submitted_unix_ms(record.submitted_ms);
  job.set_started_unix_ms(record.started_ms);
  job.set_ended_unix_ms(record.ended_ms);
  job.set_code(record.code);
  job.set_message(record.message);
  job.set_cancel_requested(record.cancel_requested);
  return job;
}

v1::JobEvent StreamPosition::make_event() const {
  v1::JobEvent event;
  event.set_job_id(job_id_);
  event.mutable_cursor()->set_epoch(cursor_.epoch);
  event.mutable_cursor()->set_seq(cursor_.seq);
  return event;
}

v1::JobEvent StreamPosition::queued_event(std::uint32_t place) const {
  v1::JobEvent event = make_event();
  event.mutable_queued()->set_place(place);
  return event;
}

v1::JobEvent StreamPosition::accepted_event(const std::string& request_id, bool duplicate) const {
  v1::JobEvent event = make_event();
  event.mutable_accepted()->set_request_id(request_id);
  event.mutable_accepted()->set_duplicate(duplicate);
  return event;
}

Result<v1::JobEvent> StreamPosition::translate(const queue::StreamEntry& entry) {
  auto stored = wire::parse_stream_event(entry.bytes);
  if (!stored) {
    return Error{ErrorCode::kDataLoss,
                 fmt::format("event {}-{} of job {} can not be read", entry.cursor.epoch, entry.cursor.seq, job_id_)};
  }
  cursor_ = entry.cursor;
  v1::JobEvent event = make_event();
  switch (stored->event_case()) {
    case v1::StreamEvent::kStarted: event.mutable_started()->Swap(stored->mutable_started()); break;
    case v1::StreamEvent::kProgress: event.mutable_progress()->Swap(stored->mutable_progress()); break;
    case v1::StreamEvent::kFragment: event.mutable_fragment()->Swap(stored->mutable_fragment()); break;
    case v1::StreamEvent::kFinished:
      event.mutable_finished()->Swap(stored->mutable_finished());
      saw_last_word_ = true;
      break;
    case v1::StreamEvent::kFailed:
      event.mutable_failed()->Swap(stored->mutable_failed());
      saw_last_word_ = true;
      break;
    case v1::StreamEvent::EVENT_NOT_SET: break;  // parse_stream_event refuses it
  }
  return event;
}

Result<StreamPosition::Step> StreamPosition::advance(const queue::EventBatch& batch) {
  const queue::JobRecord& record = batch.record;
  const queue::Cursor end{record.epoch, record.last_seq};
  if (first_ && cursor_ > end) {
    return invalid_fields(
        {{"after",
          fmt::format("{}-{} is beyond the job's newest event {}-{}", cursor_.epoch, cursor_.seq, end.epoch, end.seq)}});
  }
  first_ = false;

  Step step;
  step.waits_in_queue = record.state == queue::JobState::kQueued;
  if (record.epoch > cursor_.epoch) {
    const bool client_has_older_events = cursor_ > queue::Cursor{};
    cursor_ = {record.epoch, 0};
    if (client_has_older_events) {
      v1::JobEvent event = make_event();
      event.mutable_restarted()->set_epoch(record.epoch);
      step.events.push_back(std::move(event));
    }
  }

  const std::size_t n_before = step.events.size();
  for (const queue::StreamEntry& entry : batch.entries) {
    if (entry.cursor.epoch < cursor_.epoch) {
      continue;  // void
    }
    if (entry.cursor.epoch > cursor_.epoch || entry.cursor.seq != cursor_.seq + 1) {
      return Error{ErrorCode::kDataLoss,
                   fmt::format("event {}-{} of job {} is missing", cursor_.epoch, cursor_.seq + 1, job_id_)};
    }
    MEROPE_ASSIGN_OR_RETURN(v1::JobEvent event, translate(entry));
    step.events.push_back(std::move(event));
  }

  if (!queue::is_terminal(record.state)) {
    return step;
  }
  const bool at_end = cursor_ >= end;
  if (!at_end && step.events.size() == n_before) {
    // The last entries may have come after the entries were read and before the record was: only a second look can tell.
    if (!std::exchange(missed_the_end_, true)) {
      step.read_again = true;
      return step;
    }
    return Error{ErrorCode::kDataLoss,
                 fmt::format("event {}-{} of job {} is missing or no longer kept", cursor_.epoch, cursor_.seq + 1, job_id_)};
  }
  missed_the_end_ = false;
  step.read_again = !at_end;
  if (at_end) {
    step.complete = true;
    if (!saw_last_word_ && record.state != queue::JobState::kSucceeded) {
      v1::JobEvent event = make_event();
      event.mutable_failed()->set_code(record.code);
      event.mutable_failed()->set_message(record.message);
      step.events.push_back(std::move(event));
    }
  }
  return step;
}

}  // namespace merope::server
