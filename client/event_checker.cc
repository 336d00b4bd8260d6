#include "client/event_checker.h"

#include <fmt/core.h>

namespace merope::client {
namespace {

using Kind = v1::JobEvent::EventCase;

bool is_stored(const v1::JobEvent& event) {
  switch (event.event_case()) {
    case Kind::kStarted:
    case Kind::kProgress:
    case Kind::kFragment:
    case Kind::kFinished:
    case Kind::kFailed: return true;
    default: return false;
  }
}

Error data_loss(std::string message) {
  return {ErrorCode::kDataLoss, std::move(message)};
}

}  // namespace

EventChecker::EventChecker(Cursor after) : cursor_(after), complete_(after.seq == 0) {
  digest_.emplace();
}

Result<EventChecker::Verdict> EventChecker::accept(const v1::JobEvent& event) {
  if (event.event_case() == Kind::kRestarted) {
    if (event.restarted().epoch() <= cursor_.epoch) {
      return Verdict::kRepeat;
    }
    begin_epoch(event.restarted().epoch());
    return Verdict::kDeliver;
  }
  if (!is_stored(event)) {
    return Verdict::kDeliver;
  }

  const Cursor at{event.cursor().epoch(), event.cursor().seq()};
  const bool behind = at.epoch < cursor_.epoch || (at.epoch == cursor_.epoch && at.seq <= cursor_.seq);
  // The end of a job that no attempt wrote has no place of its own in the stream; and an end is never repeated.
  if (event.event_case() == Kind::kFailed && (behind || at.seq == 0)) {
    return Verdict::kDeliver;
  }
  if (behind) {
    return Verdict::kRepeat;
  }
  Verdict verdict = Verdict::kDeliver;
  if (at.epoch > cursor_.epoch) {
    if (anything_ || cursor_.seq > 0) {
      verdict = Verdict::kDeliverAfterRestart;
    }
    begin_epoch(at.epoch);
  }
  if (at.seq != cursor_.seq + 1) {
    return data_loss(fmt::format(
        "{}: event {}-{} is missing, {}-{} came instead", event.job_id(), at.epoch, cursor_.seq + 1, at.epoch, at.seq));
  }
  cursor_ = at;
  anything_ = true;
  MEROPE_RETURN_IF_ERROR(verify(event));
  return verdict;
}

void EventChecker::begin_epoch(std::uint64_t epoch) {
  cursor_ = {epoch, 0};
  complete_ = true;
  anything_ = false;
  bytes_ = 0;
  digest_.emplace();
}

Status EventChecker::verify(const v1::JobEvent& event) {
  if (event.event_case() == Kind::kFragment) {
    bytes_ += event.fragment().data().size();
    digest_->update(event.fragment().data());
  }
  if (event.event_case() != Kind::kFinished || !complete_) {
    return {};
  }
  const v1::Finished& finished = event.finished();
  if (finished.bytes() != bytes_) {
    return data_loss(fmt::format("{}: {} bytes received, Finished says {}", event.job_id(), bytes_, finished.bytes()));
  }
  const std::string digest = digest_->finish_hex();
  if (finished.sha256() != digest) {
    return data_loss(
        fmt::format("{}: SHA-256 of the bytes received is {}, Finished says {}", event.job_id(), digest, finished.sha256()));
  }
  verified_ = true;
  return {};
}

}  // namespace merope::client
