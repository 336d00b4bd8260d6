// Turns the events of one or several watch calls into one sequence without holes, repeats or wrong bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/base/sha256.h"
#include "merope/v1/generation.pb.h"

namespace merope::client {

// A position in a job's event stream; {0, 0} is before the first event.
struct Cursor {
  std::uint64_t epoch = 0;  // rises with every attempt
  std::uint64_t seq = 0;    // 1, 2, 3, ... within an epoch
  bool operator==(const Cursor&) const = default;
};

// One thread at a time. Started, Progress, Fragment, Finished and Failed are stored events: each has the next seq of its
// epoch. Accepted, Queued and Restarted are made by the server on the way and have none of their own. So is the Failed of a
// job that ended while no attempt was running.
class EventChecker {
 public:
  enum class Verdict {
    kDeliver,
    kDeliverAfterRestart,  // a newer attempt without a Restarted before it: the receiver must drop what it has first
    kRepeat,               // received before, to be ignored
  };

  // `after`: where the first watch call starts. The bytes are verified against Finished only when that is the beginning of
  // an attempt, since what came earlier is not known here.
  explicit EventChecker(Cursor after = {});

  // kDataLoss: an event is missing, or Finished names other bytes than those received.
  Result<Verdict> accept(const v1::JobEvent& event);

  // Where to resume.
  Cursor cursor() const { return cursor_; }
  // Whether Finished has been compared with all bytes of the clip.
  bool verified() const { return verified_; }

 private:
  void begin_epoch(std::uint64_t epoch);
  Status verify(const v1::JobEvent& event);

  Cursor cursor_;
  bool complete_;          // every byte of this epoch has passed through here
  bool anything_ = false;  // the receiver holds something of this epoch
  bool verified_ = false;
  std::uint64_t bytes_ = 0;
  std::optional<Sha256> digest_;
};

}  // namespace merope::client
