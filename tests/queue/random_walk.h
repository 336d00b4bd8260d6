// A seeded random sequence of everything that clients, servers and workers do to a queue, slow, dead and confused workers
// included, with a checker that knows only what was promised.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/queue/world.h"

namespace merope::queue {

class RandomWalk {
 public:
  RandomWalk(World& world, std::uint64_t seed);

  // Does one thing. Returns what was done and answered: equal for equal queues.
  std::string step();
  // Looks at every job. Returns the first broken promise, or nothing.
  std::string check();
  // Lets healthy workers work until nothing is left, then checks that every accepted job has ended.
  std::string drain();
  // Every record and stream, for comparing two queues.
  std::string dump();

 private:
  struct Claim {
    ClaimedJob job;
    std::size_t worker = 0;
    std::uint64_t written = 0;
  };
  // What is known of an accepted job from the answers so far.
  struct Known {
    std::string request_id;
    JobRecord last;
    std::set<std::uint64_t> epochs_given;
    std::uint64_t entries_at_cancel = 0;  // of the running epoch
    bool cancel_answered = false;
  };

  std::uint64_t pick(std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random_); }
  std::string submit();
  std::string claim();
  std::string write(Claim& claim);
  std::string finish(Claim& claim);
  std::string cancel(const std::string& job_id);
  std::string any_job();
  void broken(const std::string& promise);
  void check_step(Known& known, const JobRecord& now);
  void check_stream(const Known& known, const EventBatch& batch);

  World& world_;
  std::mt19937_64 random_;
  std::unique_ptr<JobSubmitter> server_;
  std::unique_ptr<JobEventSource> events_;
  std::vector<std::unique_ptr<JobConsumer>> workers_;
  std::vector<Claim> claims_;
  std::map<std::string, Known> jobs_;
  std::map<std::string, std::string> job_of_request_;
  std::string broken_;
};

// The limits that the walk is tuned for: full queues, lost leases and poison are common.
QueueLimits walk_limits();

}  // namespace merope::queue
