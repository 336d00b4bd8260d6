// Names in Redis. One hash tag keeps all of them in one slot, so that a script may touch them together. The scripts build
// them from kPrefix; what C++ itself needs stands here too.
//
// - s:high, s:normal, s:low: streams with group `workers`, one entry `id` per job from its submission to its end, so that
//   XLEN = waiting + running
// - s:<class>:returned: jobs that came back, which are read first
// - job:<id>: hash, the job (see scripts.cc); expires keep_job after the end
// - in:<id>: string, the uploaded pictures; deleted at the end
// - out:<id>: stream with entries `<epoch>-<seq>`, field `b`; expires keep_output after the end
// - request:<request id>: string, the job id; expires with the job
// - queued: sorted set of waiting jobs in the order of service
// - running: sorted set of running jobs by the end of their lease
// - jobs, ended: sorted sets of all jobs by submission; of ended ones by the time they are forgotten
// - order: counter of enqueuings
// - claims: hash, worker -> its last claim, so that a claim whose answer was lost can be repeated
// - worker:<name>, workers: hash of an announcement, for 15 s; sorted set of names by the time they are believed until
// - models: hash, model name -> newest announcement
// - dead: stream of poison jobs, the newest 1000 or so
// - wake: channel, ids of jobs that changed
#pragma once

#include <array>
#include <string_view>

namespace merope::queue::redis {

inline constexpr std::string_view kPrefix = "{merope}:";
inline constexpr std::string_view kWakeChannel = "{merope}:wake";

// In the order of service.
inline constexpr std::array<std::string_view, 6> kStreams{"{merope}:s:high:returned",
                                                          "{merope}:s:high",
                                                          "{merope}:s:normal:returned",
                                                          "{merope}:s:normal",
                                                          "{merope}:s:low:returned",
                                                          "{merope}:s:low"};

}  // namespace merope::queue::redis
