#include "worker/app/lease_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/app/worker_world.h"

namespace merope::worker {
namespace {

using namespace std::chrono_literals;

struct HeldJob {
  explicit HeldJob(WorkerWorld& world) : id(world.submit(test::fake_spec())) {
    auto claimed = world.consumer.claim(0ms, {});
    lease = world.keeper.hold(std::move(**claimed));
  }
  std::string id;
  std::shared_ptr<JobLease> lease;
};

TEST(LeaseKeeper, BeatsEveryThirdOfTheLease) {
  WorkerWorld world;
  const HeldJob job(world);
  for (int i = 0; i < 30; ++i) {
    world.pass(kLease / 30);
    job.lease->advanced();
    world.keeper.tick();
  }
  EXPECT_EQ(world.consumer.n_beats, 3);
  for (int i = 0; i < 10; ++i) {
    world.pass(kLease / 3);
    job.lease->advanced();
    world.keeper.tick();
  }
  EXPECT_EQ(job.lease->loss(), LeaseLoss::kNone);
  EXPECT_FALSE(*world.queue.consumer("w2")->claim(0ms, {})) << "the queue agrees";
}

TEST(LeaseKeeper, SaysWhenItWantsToBeCalledAgain) {
  WorkerWorld world;
  EXPECT_EQ(world.keeper.tick(), 5s);  // the next announcement
  const HeldJob job(world);
  world.keeper.tick();
  world.pass(8s);
  EXPECT_EQ(world.keeper.tick(), 2s);  // the first beat of a lease of 30 s
}

TEST(LeaseKeeper, KnowsWhetherAnyServerCanKnowTheWorker) {
  WorkerWorld world;
  world.consumer.on_announce = [] { return away(); };
  world.keeper.tick();
  EXPECT_FALSE(world.keeper.announced());
  world.consumer.on_announce = nullptr;
  world.pass(5s);
  world.keeper.tick();
  EXPECT_TRUE(world.keeper.announced());
}

TEST(LeaseKeeper, AnnouncesTheWorkerAndItsJob) {
  WorkerWorld world;
  world.keeper.tick();
  world.keeper.tick();
  EXPECT_EQ(world.consumer.n_announces, 1);
  EXPECT_EQ(world.submitter->workers()->size(), 1U);
  const HeldJob job(world);
  world.keeper.tick();  // at once, not after 5 s
  EXPECT_EQ(world.consumer.announced_job, job.id);
  world.keeper.drop();
  world.keeper.tick();
  EXPECT_EQ(world.consumer.announced_job, "");
  EXPECT_EQ(world.consumer.n_announces, 3);
}

TEST(LeaseKeeper, GivesUpTheLeaseOfAnEngineThatStalls) {
  WorkerWorld world;
  const HeldJob job(world);
  for (int i = 0; i < 12; ++i) {  // 120 s, the limit
    EXPECT_EQ(job.lease->loss(), LeaseLoss::kNone);
    world.pass(10s);
    world.keeper.tick();
  }
  EXPECT_EQ(job.lease->loss(), LeaseLoss::kStalled);
  EXPECT_TRUE(world.keeper.stalled());
  EXPECT_EQ(world.n_stalls, 1);
  const int beats = world.consumer.n_beats;
  for (int i = 0; i < 4; ++i) {
    world.pass(10s);
    world.keeper.tick();
  }
  EXPECT_EQ(world.consumer.n_beats, beats) << "no beat for a hung engine";
  const auto taken = world.queue.consumer("w2")->claim(0ms, {});
  ASSERT_TRUE(taken && *taken);
  EXPECT_EQ((*taken)->attempt, 2U);
}

TEST(LeaseKeeper, StalledEngineFindsOutWhenItComesBack) {
  WorkerWorld world;
  const std::string id = world.submit(test::fake_spec());
  world.engine->script.before_step = [&](int) {
    for (int i = 0; i < 13; ++i) {
      world.pass(10s);
      world.keeper.tick();
    }
  };
  EXPECT_EQ(world.run_next(), JobOutcome::kLost);
  EXPECT_EQ(world.metrics.lease_stalled.value(), 1);
}

TEST(LeaseKeeper, AsksAgainSoonWhenABeatFails) {
  WorkerWorld world;
  const HeldJob job(world);
  world.consumer.on_beat = [] { return away(); };
  world.consumer.on_announce = [] { return away(); };
  world.pass(10s);
  world.keeper.tick();
  EXPECT_FALSE(world.keeper.queue_answers());
  EXPECT_EQ(job.lease->loss(), LeaseLoss::kNone);
  world.consumer.on_beat = nullptr;
  world.consumer.on_announce = nullptr;
  world.pass(3s);
  world.keeper.tick();
  EXPECT_TRUE(world.keeper.queue_answers());
  world.pass(29s);
  EXPECT_EQ(job.lease->loss(), LeaseLoss::kNone) << "renewed at 13 s";
  world.pass(1s);
  EXPECT_EQ(job.lease->loss(), LeaseLoss::kExpired);
}

TEST(LeaseKeeper, LeaseEndsByItsOwnClockWhenTheQueueIsAway) {
  WorkerWorld world;
  const HeldJob job(world);
  world.consumer.on_beat = [] { return away(); };
  for (int i = 0; i < 10; ++i) {
    world.pass(3s);
    world.keeper.tick();
  }
  EXPECT_EQ(job.lease->loss(), LeaseLoss::kExpired);
  EXPECT_EQ(job.lease->status().error().code, ErrorCode::kAborted);
}

TEST(LeaseKeeper, GoesOnBeatingForACancelledJobUntilItHasEnded) {
  WorkerWorld world;
  const HeldJob job(world);
  ASSERT_TRUE(world.submitter->cancel(job.id));
  for (int i = 0; i < 6; ++i) {
    world.pass(10s);
    world.keeper.tick();
    EXPECT_EQ(job.lease->loss(), LeaseLoss::kCancelled);
  }
  EXPECT_EQ(world.consumer.n_beats, 6);
}

TEST(JobLease, ABeatThatCameThroughWakesAWriteThatWaits) {
  const SystemClock clock;
  queue::ClaimedJob claimed;
  claimed.lease = kLease;
  JobLease lease(claimed, clock);
  std::jthread beats([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      lease.renewed(clock.now());
    }
  });
  const auto begin = std::chrono::steady_clock::now();
  lease.wait_to_retry(60s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

}  // namespace
}  // namespace merope::worker
