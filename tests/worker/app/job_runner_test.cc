#include "worker/app/job_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <semaphore>
#include <string>

#include "core/base/sha256.h"
#include "core/media/picture_decoder.h"
#include "tests/worker/app/worker_world.h"

namespace merope::worker {
namespace {

using namespace std::chrono_literals;
using test::fake_spec;
using ::testing::HasSubstr;

std::string png_of(const GenerationSpec& spec, int index) {
  return *media::encode_png(test::fake_frame(spec, index), 0);
}

TEST(JobRunner, PublishesEveryFrameAndEndsTheJobOnce) {
  WorkerWorld world;
  const GenerationSpec spec = fake_spec();
  const std::string id = world.submit(spec);
  EXPECT_EQ(world.run_next(), JobOutcome::kSucceeded);

  const test::ReadStream stream = world.stream(id);
  EXPECT_EQ(stream.error, "");
  EXPECT_EQ(stream.record.state, queue::JobState::kSucceeded);
  ASSERT_TRUE(stream.events.front().has_started());
  EXPECT_EQ(stream.events.front().started().worker(), "w1");
  EXPECT_EQ(stream.events.front().started().attempt(), 1U);
  const v1::Finished* finished = stream.finished();
  ASSERT_NE(finished, nullptr);
  EXPECT_EQ(finished->frames(), 9U);
  EXPECT_EQ(finished->seed(), 7U);
  EXPECT_EQ(finished->bytes(), stream.file.size());
  EXPECT_EQ(finished->sha256(), sha256_hex(stream.file));
  ASSERT_EQ(finished->stage_seconds_size(), 3);  // what the engine measured, and decoding the pictures before it
  EXPECT_EQ(finished->stage_seconds(1).stage(), v1::STAGE_DENOISE);
  EXPECT_EQ(finished->stage_seconds(1).seconds(), 0.25);

  const auto clip = media::decode_clip(stream.file, 32, 16, 9);
  ASSERT_TRUE(clip) << clip.error().message;
  for (int i = 0; i < 9; ++i) {
    EXPECT_TRUE(std::ranges::equal(clip->frame(i), test::fake_frame(spec, i).pixels)) << "frame " << i;
  }
  EXPECT_EQ(world.metrics.succeeded.finished->value(), 1);
  EXPECT_EQ(world.metrics.frames.value(), 9);
  EXPECT_EQ(world.metrics.fragment_bytes.value(), static_cast<double>(stream.file.size()));
}

TEST(JobRunner, SendsTheFirstFragmentBeforeTheLastFrameIsDecoded) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.n_frames = 33;
  while (spec.trajectory.frames.size() < 33) {
    spec.trajectory.frames.push_back(spec.trajectory.frames.back());
    spec.trajectory.frames.back().time_s += 1 / 24.0;
  }
  const std::string id = world.submit(spec);
  bool seen = false;
  world.engine->script.before_decode = [&](int latent) {
    if (latent != 8) {
      return;  // 29 of 33 frames are out
    }
    for (int wake = 0; wake < 100 && !seen; ++wake) {
      for (const v1::StreamEvent& event : world.stream(id).events) {
        seen = seen || event.fragment().n_frames() > 0;
      }
      if (!seen) {
        ASSERT_TRUE(world.events->wait_for_wakeups(5s));
      }
    }
  };
  EXPECT_EQ(world.run_next(), JobOutcome::kSucceeded);
  EXPECT_TRUE(seen);
}

TEST(JobRunner, TellsProgressWithAnEstimateFromMeasuredSteps) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.steps = 5;
  const std::string id = world.submit(spec);
  world.engine->script.before_step = [&](int) { world.clock.advance(2s); };
  world.engine->script.before_decode = [&](int) { world.clock.advance(1s); };
  EXPECT_EQ(world.run_next(), JobOutcome::kSucceeded);
  std::vector<double> left;
  for (const v1::StreamEvent& event : world.stream(id).events) {
    if (event.has_progress() && event.progress().stage() == v1::STAGE_DENOISE) {
      EXPECT_EQ(event.progress().steps(), 5U);
      left.push_back(event.progress().seconds_left());
    }
  }
  EXPECT_EQ(left, (std::vector<double>{8, 6, 4, 2, 0}));

  // The next job of this worker also knows how long decoding took: 3 latent frames of a second.
  ProgressEstimate estimate(world.clock);
  estimate.begin(100);
  for (int i = 1; i <= 3; ++i) {
    world.clock.advance(1s);
    estimate.step_done(Stage::kDecode, i, 3);
  }
  estimate.begin(200);
  EXPECT_FALSE(estimate.seconds_left());
  world.clock.advance(2s);
  estimate.step_done(Stage::kDenoise, 1, 10);
  EXPECT_DOUBLE_EQ(*estimate.seconds_left(), 9 * 2 + 6);
}

TEST(JobRunner, BeginsTheClipWithThePicturesOfTheClient) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  GenerationSpec other = spec;
  other.seed = 3;
  spec.n_conditioning_frames = 1;
  const std::string id = world.submit(test::fake_job(spec, "r", {png_of(other, 5)}));
  EXPECT_EQ(world.run_next(), JobOutcome::kSucceeded);
  const auto clip = media::decode_clip(world.stream(id).file, 32, 16, 9);
  ASSERT_TRUE(clip) << clip.error().message;
  EXPECT_TRUE(std::ranges::equal(clip->frame(0), test::fake_frame(other, 5).pixels));
  EXPECT_TRUE(std::ranges::equal(clip->frame(1), test::fake_frame(spec, 1).pixels));
}

TEST(JobRunner, NamesTheBrokenPicture) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.n_conditioning_frames = 5;
  std::vector<std::string> pictures(5, png_of(spec, 0));
  pictures[3] = pictures[3].substr(0, pictures[3].size() - 8);
  const std::string id = world.submit(test::fake_job(spec, "r", pictures));
  EXPECT_EQ(world.run_next(), JobOutcome::kFailed);
  const test::ReadStream stream = world.stream(id);
  EXPECT_EQ(stream.record.state, queue::JobState::kFailed);
  EXPECT_EQ(stream.record.code, static_cast<int>(ErrorCode::kInvalidArgument));
  ASSERT_NE(stream.failed(), nullptr);
  EXPECT_THAT(stream.failed()->message(), HasSubstr("conditioning.pictures.files[3]: PNG is cut off"));
  EXPECT_EQ(world.engine->n_generations, 0);
}

TEST(JobRunner, StopsACancelledJobAtTheNextStep) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.steps = 50;
  const std::string id = world.submit(spec);
  int last_step = 0;
  world.engine->script.before_step = [&](int step) {
    last_step = step;
    if (step == 3) {
      ASSERT_TRUE(world.submitter->cancel(id));
      world.pass(kLease / 3);
      world.keeper.tick();  // the beat brings the news
    }
  };
  EXPECT_EQ(world.run_next(), JobOutcome::kCancelled);
  EXPECT_EQ(last_step, 3);
  const test::ReadStream stream = world.stream(id);
  EXPECT_EQ(stream.error, "");
  EXPECT_EQ(stream.record.state, queue::JobState::kCancelled);
  ASSERT_NE(stream.failed(), nullptr);
  EXPECT_EQ(stream.failed()->code(), static_cast<int>(ErrorCode::kCancelled));
}

TEST(JobRunner, LearnsOfACancelByWritingToo) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.steps = 50;
  const std::string id = world.submit(spec);
  world.engine->script.before_step = [&](int step) {
    if (step == 3) {
      ASSERT_TRUE(world.submitter->cancel(id));
    }
  };
  EXPECT_EQ(world.run_next(), JobOutcome::kCancelled);
  EXPECT_EQ(world.record(id).state, queue::JobState::kCancelled);
}

TEST(JobRunner, ACancelWinsOverAResultThatIsNotWrittenYet) {
  WorkerWorld world;
  const std::string id = world.submit(fake_spec());
  world.consumer.on_finish = [&]() -> HookedConsumer::Fault {
    (void)world.submitter->cancel(id);
    return {};
  };
  EXPECT_EQ(world.run_next(), JobOutcome::kCancelled);
  EXPECT_EQ(world.record(id).state, queue::JobState::kCancelled);
  EXPECT_EQ(world.stream(id).finished(), nullptr);
}

TEST(JobRunner, EndsAJobThatRunsTooLong) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.steps = 50;
  queue::NewJob job = test::fake_job(spec, "r");
  job.max_run_time = 5s;
  const std::string id = world.submit(job);
  int last_step = 0;
  world.engine->script.before_step = [&](int step) {
    last_step = step;
    world.pass(1s);
  };
  EXPECT_EQ(world.run_next(), JobOutcome::kFailed);
  EXPECT_EQ(last_step, 5);
  const test::ReadStream stream = world.stream(id);
  EXPECT_EQ(stream.record.state, queue::JobState::kFailed);
  EXPECT_EQ(stream.record.code, static_cast<int>(ErrorCode::kDeadlineExceeded));
  EXPECT_THAT(stream.record.message, HasSubstr("max_run_time (5000 ms)"));
}

TEST(JobRunner, GoesQuietWhenAnotherWorkerHasTheJob) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.steps = 10;
  const std::string id = world.submit(spec);
  const auto other = world.queue.consumer("w2");
  std::optional<queue::ClaimedJob> taken;
  world.engine->script.before_step = [&](int step) {
    if (step == 4) {
      world.queue_clock.advance(kLease);  // for the queue only: this worker believes in its lease
      taken = *other->claim(0ms, {});
    }
  };
  EXPECT_EQ(world.run_next(), JobOutcome::kLost);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->attempt, 2U);
  EXPECT_EQ(world.record(id).state, queue::JobState::kRunning);
  EXPECT_EQ(world.record(id).epoch, taken->epoch);
  EXPECT_EQ(world.stream(id).events.size(), 0U) << "the new attempt has written nothing, and the old one may not";
  EXPECT_EQ(world.metrics.lease_fenced.value(), 1);
  world.engine->script = {};
  world.submit(fake_spec());
  EXPECT_EQ(world.run_next(), JobOutcome::kSucceeded) << "and claims on";
}

TEST(JobRunner, StopsByItselfWhenItsLeaseIsOver) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.steps = 10;
  const std::string id = world.submit(spec);
  int last_step = 0;
  world.engine->script.before_step = [&](int step) {
    last_step = step;
    if (step == 4) {
      world.clock.advance(kLease);  // a frozen process that wakes up
    }
  };
  EXPECT_EQ(world.run_next(), JobOutcome::kLost);
  EXPECT_EQ(last_step, 4);
  EXPECT_EQ(world.record(id).state, queue::JobState::kRunning) << "not ended by a worker that may have lost it";
  EXPECT_EQ(world.metrics.lease_expired.value(), 1);
}

TEST(JobRunner, FailsAJobWhoseEngineFailed) {
  for (const ErrorCode code : {ErrorCode::kInternal, ErrorCode::kResourceExhausted}) {
    WorkerWorld world;
    world.engine->script.fail_at = {2, {code, "out of device memory"}};
    const std::string id = world.submit(fake_spec());
    EXPECT_EQ(world.run_next(), JobOutcome::kFailed);
    EXPECT_EQ(world.record(id).state, queue::JobState::kFailed);
    EXPECT_EQ(world.record(id).code, static_cast<int>(code));
    EXPECT_EQ(world.record(id).message, "out of device memory");
    world.engine->script = {};
    world.submit(fake_spec());
    EXPECT_EQ(world.run_next(), JobOutcome::kSucceeded) << "the worker goes on";
  }
}

TEST(JobRunner, AJobThatBreaksDevicesEndsAsPoison) {
  WorkerWorld world;
  world.engine->script.fail_at = {1, unavailable("the device has fallen off the bus")};
  const std::string id = world.submit(fake_spec());
  for (int attempt = 1; attempt <= 3; ++attempt) {
    EXPECT_EQ(world.run_next(), JobOutcome::kDeviceLost);
    EXPECT_EQ(world.record(id).attempts, static_cast<std::uint32_t>(attempt));
    EXPECT_EQ(world.record(id).state, queue::JobState::kRunning) << "until the lease runs out";
    world.pass(kLease);
    ASSERT_TRUE(world.submitter->reconcile());
  }
  EXPECT_EQ(world.record(id).state, queue::JobState::kFailed);
  EXPECT_EQ(world.metrics.takeovers.value(), 2);
}

TEST(JobRunner, FailsAJobWithTooFewFrames) {
  WorkerWorld world;
  world.engine->script.frames_missing = 4;
  const std::string id = world.submit(fake_spec());
  EXPECT_EQ(world.run_next(), JobOutcome::kFailed);
  EXPECT_THAT(world.record(id).message, HasSubstr("5 of 9 frames"));
}

TEST(JobRunner, FailsASizeThatTheEncoderCanNotHoldBeforeItGenerates) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.output = OutputFormat::kH264;
  spec.width = 33;
  for (camera::TrajectoryFrame& frame : spec.trajectory.frames) {
    frame.lens.width = 33;
  }
  spec.steps = 1000;
  const std::string id = world.submit(spec);
  EXPECT_EQ(world.run_next(), JobOutcome::kFailed);
  EXPECT_EQ(world.record(id).code, static_cast<int>(ErrorCode::kInvalidArgument));
  EXPECT_THAT(world.record(id).message, HasSubstr("33x16"));
}

TEST(JobRunner, FailsAJobWhoseOutputIsTooLong) {
  queue::QueueLimits limits;
  limits.max_output_bytes = 1500;
  WorkerWorld world(limits);
  const std::string id = world.submit(fake_spec());
  EXPECT_EQ(world.run_next(), JobOutcome::kFailed);
  EXPECT_EQ(world.record(id).state, queue::JobState::kFailed);
  EXPECT_THAT(world.record(id).message, HasSubstr("1500 bytes"));
}

TEST(JobRunner, GivesBackAJobForAnotherModel) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.model = "another";
  const std::string id = world.submit(spec);
  EXPECT_EQ(world.run_next(), JobOutcome::kNotForUs);
  EXPECT_EQ(world.record(id).state, queue::JobState::kQueued);
  EXPECT_EQ(world.record(id).attempts, 0U);
}

TEST(JobRunner, FailsAJobThatCanNotBeRead) {
  WorkerWorld world;
  queue::NewJob job = test::fake_job(fake_spec(), "r");
  job.spec = "\xFF\xFF not a spec";
  const std::string id = world.submit(job);
  EXPECT_EQ(world.run_next(), JobOutcome::kFailed);
  EXPECT_EQ(world.record(id).code, static_cast<int>(ErrorCode::kDataLoss));
}

TEST(JobRunner, WritesEachEntryOnceThroughAQueueThatComesAndGoes) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.steps = 20;
  const std::string id = world.submit(spec);
  int n = 0;
  // Of three writes one is lost on the way there and one on the way back.
  const auto flaky = [&]() -> HookedConsumer::Fault {
    ++n;
    return n % 3 == 1 ? away() : n % 3 == 2 ? away(true) : HookedConsumer::Fault();
  };
  world.consumer.on_put = flaky;
  world.consumer.on_finish = flaky;
  EXPECT_EQ(world.run_next(), JobOutcome::kSucceeded);
  const test::ReadStream stream = world.stream(id);
  EXPECT_EQ(stream.error, "");
  ASSERT_NE(stream.finished(), nullptr);
  EXPECT_EQ(stream.finished()->sha256(), sha256_hex(stream.file));
  EXPECT_GE(world.metrics.put_retries.value(), 40);
  int steps = 0;
  for (const v1::StreamEvent& event : stream.events) {
    steps += event.progress().stage() == v1::STAGE_DENOISE ? 1 : 0;
  }
  EXPECT_EQ(steps, 20) << "none twice, none missing";
}

TEST(JobRunner, KeepsTheResultUntilTheLeaseEndsAndThenGoesQuiet) {
  WorkerWorld world;
  const std::string id = world.submit(fake_spec());
  int tries = 0;
  world.consumer.on_finish = [&]() -> HookedConsumer::Fault {
    ++tries;
    world.clock.advance(kLease / 10);
    return away();
  };
  EXPECT_EQ(world.run_next(), JobOutcome::kLost);
  EXPECT_GE(tries, 10);
  EXPECT_EQ(world.record(id).state, queue::JobState::kRunning);
}

TEST(JobRunner, CancelledWhileAWriteIsUnansweredStillEndsTheStreamWithoutAHole) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.steps = 20;
  const std::string id = world.submit(spec);
  int n = 0;
  std::binary_semaphore unanswered(0);
  world.consumer.on_put = [&]() -> HookedConsumer::Fault {
    if (++n < 4) {
      return {};
    }
    // The entry arrives, its answer does not, and before the next try a beat brings the cancel.
    if (n == 4) {
      unanswered.release();
    }
    return away(true);
  };
  world.engine->script.before_step = [&](int step) {
    if (step == 3) {  // entry 4 is the progress of step 1
      ASSERT_TRUE(unanswered.try_acquire_for(30s));
      (void)world.submitter->cancel(id);
      world.pass(kLease / 3);
      world.keeper.tick();
    }
  };
  EXPECT_EQ(world.run_next(), JobOutcome::kCancelled);
  EXPECT_EQ(world.stream(id).error, "");
}

TEST(JobRunner, FinishesInsideTheDrainTime) {
  WorkerWorld world;
  const std::string id = world.submit(fake_spec());
  world.engine->script.before_step = [&](int step) {
    if (step == 1) {
      world.drain->request(world.clock.now() + 60s);
    }
    world.pass(1s);
  };
  EXPECT_EQ(world.run_next(), JobOutcome::kSucceeded);
  EXPECT_EQ(world.record(id).state, queue::JobState::kSucceeded);
}

TEST(JobRunner, GivesTheJobBackWhenTheDrainTimeIsOver) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.steps = 3;
  const std::string id = world.submit(spec);
  world.engine->script.before_step = [&](int step) {
    if (step == 2) {
      world.drain->request(world.clock.now());
    }
  };
  EXPECT_EQ(world.run_next(), JobOutcome::kReleased);
  EXPECT_EQ(world.record(id).state, queue::JobState::kQueued);
  EXPECT_EQ(world.record(id).attempts, 0U) << "a release does not count";

  // Another worker begins again, and a client that reads on sees a whole stream of the new epoch.
  world.drain.emplace();
  world.engine->script = {};
  EXPECT_EQ(world.run_next(), JobOutcome::kSucceeded);
  const test::ReadStream stream = world.stream(id);
  EXPECT_EQ(stream.error, "");
  ASSERT_NE(stream.finished(), nullptr);
  EXPECT_EQ(stream.record.attempts, 1U);
  EXPECT_EQ(stream.record.epoch, 2U);
}

TEST(JobRunner, GivesTheJobBackAtOnceWhenItCanNotEndInTheDrainTime) {
  WorkerWorld world;
  GenerationSpec spec = fake_spec();
  spec.steps = 50;
  const std::string id = world.submit(spec);
  int last_step = 0;
  world.engine->script.before_step = [&](int step) {
    last_step = step;
    world.pass(2s);
    if (step == 3) {
      world.drain->request(world.clock.now() + 60s);  // 94 s are left
    }
    world.keeper.tick();
  };
  EXPECT_EQ(world.run_next(), JobOutcome::kReleased);
  EXPECT_EQ(last_step, 3);
  EXPECT_EQ(world.record(id).state, queue::JobState::kQueued);
}

}  // namespace
}  // namespace merope::worker
