// A server in this process that follows a script: it breaks streams, restarts attempts and lies. gRPC stays in the .cc file.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "client/event_checker.h"
#include "core/base/error.h"
#include "merope/v1/generation.pb.h"

namespace merope::client {

// How one watch call goes: these events, and then the end of the call.
struct WatchScript {
  std::vector<v1::JobEvent> events;
  std::optional<Error> error = {};  // empty: the call ends with OK
  bool hang = false;                // says nothing more until the client goes away
};

class ScriptedServer {
 public:
  ScriptedServer();
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  const std::string& address() const;
  void stop();

  // The next answers; without any Submit accepts "job-1" and Watch fails. Violations become a google.rpc.BadRequest.
  void answer_submit(std::vector<Error> errors);
  void script_watch(std::vector<WatchScript> scripts);

  std::vector<v1::GenerationRequest> submitted() const;
  std::vector<Cursor> watched_after() const;
  std::vector<std::string> cancelled() const;
  // Waits until the n-th watch call has written its events; false after ten seconds.
  bool wait_for_watch(std::size_t n) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Events of job-1 at a cursor.
v1::JobEvent event_at(std::uint64_t epoch, std::uint64_t seq);
v1::JobEvent started_event(std::uint64_t epoch, std::uint64_t seq);
v1::JobEvent fragment_event(std::uint64_t epoch, std::uint64_t seq, const std::string& data, bool last_part = true);
v1::JobEvent finished_event(std::uint64_t epoch, std::uint64_t seq, const std::string& all_bytes);
v1::JobEvent failed_event(std::uint64_t epoch, std::uint64_t seq, ErrorCode code, const std::string& message);
v1::JobEvent restarted_event(std::uint64_t epoch);

}  // namespace merope::client
