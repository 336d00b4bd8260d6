// Where one watcher stands in a job's event stream: turns what the queue has stored into the events to send, and notices
// holes. No threads, no clock, no I/O.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/queue/job.h"
#include "core/queue/job_queue.h"
#include "merope/v1/generation.pb.h"

namespace merope::server {

v1::JobState to_v1(queue::JobState state);
v1::Job to_v1(const queue::JobRecord& record);

class StreamPosition {
 public:
  // `after` is the cursor of the last event that the client has; {0, 0} = none.
  StreamPosition(std::string job_id, queue::Cursor after) : job_id_(std::move(job_id)), cursor_(after) {}

  const std::string& job_id() const { return job_id_; }
  const queue::Cursor& cursor() const { return cursor_; }

  struct Step {
    std::vector<v1::JobEvent> events;  // in order
    bool complete = false;             // the stream is at its end
    bool waits_in_queue = false;       // the job is queued: its place may be told
    bool read_again = false;           // the job ended between the reading of entries and record
  };

  // Takes what was read after cursor(). Errors: kDataLoss (an entry is missing or can not be read), kInvalidArgument (the
  // client's cursor is beyond everything that was ever written).
  //  - A higher epoch than the client's makes a Restarted and voids what is left of the older one.
  //  - A job that ended without a worker's last word (cancelled in the queue, expired, given up) ends with a Failed made
  //  from
  //    its record.
  Result<Step> advance(const queue::EventBatch& batch);

  v1::JobEvent queued_event(std::uint32_t place) const;
  v1::JobEvent accepted_event(const std::string& request_id, bool duplicate) const;

 private:
  v1::JobEvent make_event() const;
  Result<v1::JobEvent> translate(const queue::StreamEntry& entry);

  std::string job_id_;
  queue::Cursor cursor_;
  bool saw_last_word_ = false;  // Finished or Failed has been sent
  bool first_ = true;
  bool missed_the_end_ = false;  // the last batch lacked entries that the record of the ended job promises
};

}  // namespace merope::server
