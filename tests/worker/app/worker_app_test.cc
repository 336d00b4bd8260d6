#include "worker/app/worker_app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "core/base/exit_codes.h"
#include "tests/worker/app/worker_world.h"

namespace merope::worker {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct AppWorld {
  explicit AppWorld(WorkerSettings wanted = {}) : app(settings(std::move(wanted)), consumer, clock) {}

  static WorkerSettings settings(WorkerSettings wanted) {
    wanted.name = "w1";
    wanted.version = "test";
    wanted.retry = {1ms, 1ms};
    wanted.refused_pause = 1ms;
    return wanted;
  }

  WorkerApp::OpenEngine opener() {
    return [this]() -> Result<std::unique_ptr<GenerationEngine>> {
      return std::unique_ptr<GenerationEngine>(std::make_unique<test::FakeEngine>(script));
    };
  }
  std::future<int> run() {
    return std::async(std::launch::async, [this] { return app.run(opener()); });
  }
  std::string submit(const std::string& request_id, int steps = 2) {
    GenerationSpec spec = test::fake_spec();
    spec.steps = steps;
    return submitter->submit(test::fake_job(spec, request_id))->job_id;
  }
  // Waits for wake-ups until the job is in that state, at most 30 s of them.
  bool reaches(const std::string& id, queue::JobState state) {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (submitter->get(id)->state != state) {
      if (std::chrono::steady_clock::now() > deadline) {
        return false;
      }
      (void)events->wait_for_wakeups(100ms);
    }
    return true;
  }

  SystemClock clock;
  queue::MemoryQueue queue;
  std::unique_ptr<queue::JobSubmitter> submitter = queue.submitter();
  std::unique_ptr<queue::JobEventSource> events = queue.events();
  HookedConsumer consumer{queue.consumer("w1")};
  test::FakeScript script;
  WorkerApp app;
};

TEST(WorkerApp, WorksOffTheQueueAndStops) {
  AppWorld world;
  const std::string first = world.submit("a");
  const std::string second = world.submit("b");
  std::future<int> exit_code = world.run();
  EXPECT_TRUE(world.reaches(first, queue::JobState::kSucceeded));
  EXPECT_TRUE(world.reaches(second, queue::JobState::kSucceeded));
  EXPECT_EQ(world.submitter->workers()->size(), 1U);
  EXPECT_EQ(world.submitter->known_models()->size(), 1U);
  world.app.request_stop();  // ends a claim that would wait for 5 s
  EXPECT_EQ(exit_code.get(), kExitOk);
}

TEST(WorkerApp, EndsTheRunningJobBeforeItStopsAndTakesNoOther) {
  AppWorld world;
  world.script.before_step = [&](int step) {
    if (step == 1) {
      world.app.request_stop();
    }
  };
  const std::string first = world.submit("a");
  const std::string second = world.submit("b");
  EXPECT_EQ(world.app.run(world.opener()), kExitOk);
  EXPECT_EQ(world.submitter->get(first)->state, queue::JobState::kSucceeded);
  EXPECT_EQ(world.submitter->get(second)->state, queue::JobState::kQueued);
}

TEST(WorkerApp, GivesTheJobBackAtASecondRequest) {
  AppWorld world;
  world.script.before_step = [&](int step) {
    if (step == 1) {
      world.app.request_stop();
      world.app.request_stop();
    }
  };
  const std::string id = world.submit("a", 50);
  EXPECT_EQ(world.app.run(world.opener()), kExitOk);
  EXPECT_EQ(world.submitter->get(id)->state, queue::JobState::kQueued);
  EXPECT_EQ(world.submitter->get(id)->attempts, 0U);
}

TEST(WorkerApp, GoesOnWhenTheQueueComesBack) {
  AppWorld world;
  std::atomic<int> claims = 0;
  world.consumer.on_claim = [&] { return ++claims < 20 ? away() : HookedConsumer::Fault(); };
  const std::string id = world.submit("a");
  std::future<int> exit_code = world.run();
  EXPECT_TRUE(world.reaches(id, queue::JobState::kSucceeded));
  world.app.request_stop();
  EXPECT_EQ(exit_code.get(), kExitOk);
  EXPECT_GE(claims, 20);
}

TEST(WorkerApp, EndsWithItsDevice) {
  AppWorld world;
  world.script.fail_at = {1, unavailable("the device has fallen off the bus")};
  world.submit("a");
  EXPECT_EQ(world.app.run(world.opener()), kExitSoftware);
}

TEST(WorkerApp, SaysWhyTheModelCanNotBeUsed) {
  const std::pair<ErrorCode, int> cases[] = {{ErrorCode::kNotFound, 66},
                                             {ErrorCode::kDataLoss, 65},
                                             {ErrorCode::kUnimplemented, 65},
                                             {ErrorCode::kInvalidArgument, 64},
                                             {ErrorCode::kFailedPrecondition, 78},
                                             {ErrorCode::kInternal, 70}};
  for (const auto& [code, expected] : cases) {
    AppWorld world;
    EXPECT_EQ(world.app.run([code = code]() -> Result<std::unique_ptr<GenerationEngine>> {
      return Error{code, "no"};
    }),
              expected);
  }
}

TEST(WorkerApp, RefusesAPortThatIsInUse) {
  AppWorld world;
  ASSERT_TRUE(world.app.start_admin());
  WorkerSettings settings;
  settings.admin.port = world.app.admin_port();
  AppWorld second(settings);
  const Status status = second.app.start_admin();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr(std::to_string(settings.admin.port)));
}

TEST(WorkerApp, CountsWhatItDid) {
  AppWorld world;
  const std::string id = world.submit("a");
  std::future<int> exit_code = world.run();
  EXPECT_TRUE(world.reaches(id, queue::JobState::kSucceeded));
  world.app.request_stop();
  EXPECT_EQ(exit_code.get(), kExitOk);
  const std::string text = world.app.metrics().render();
  for (const char* line : {"merope_job_finished_total{outcome=\"succeeded\"} 1",
                           "merope_job_finished_total{outcome=\"lost\"} 0",  // there before it ever happens
                           "merope_worker_frames_total 9",
                           "merope_worker_stage_seconds_count{stage=\"video_encode\"} 1",
                           "merope_worker_stage_seconds_count{stage=\"store\"} 1",
                           "merope_worker_denoise_step_seconds_count{backend=\"cpu\"} 2",
                           "merope_worker_draining 1",
                           "merope_worker_busy 0"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace merope::worker
