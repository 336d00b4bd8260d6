#include <random>

#include <gtest/gtest.h>

#include "proto/wire/generation_codec.h"
#include "proto/wire/job_codec.h"
#include "tests/support/proto/requests.h"

namespace merope::wire {
namespace {

using testing::good_request;
using testing::toy_model;

GenerationSpec good_spec(const v1::GenerationRequest& request) {
  const std::vector<ModelDescription> models = {toy_model()};
  CheckedRequest checked = check_request(request, models, GenerationLimits{}, 7);
  EXPECT_TRUE(checked.violations.empty());
  return std::move(checked.spec);
}

TEST(StoredJob, ComesBackWithItsPictures) {
  v1::GenerationRequest request = good_request();
  request.set_prompt("a street");
  request.set_seed(11);
  for (int i = 0; i < 5; ++i) {
    request.mutable_conditioning()->mutable_pictures()->add_files("picture " + std::to_string(i));
  }
  const GenerationSpec spec = good_spec(request);
  const auto job = parse_stored_job(encode_stored_spec(spec), encode_stored_input(request.conditioning(), 5));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.n_conditioning_frames, 5);
  EXPECT_EQ(job->conditioning.pictures.size(), 5U);
  EXPECT_EQ(job->conditioning.pictures[4], "picture 4");
  EXPECT_TRUE(job->conditioning.mp4_clip.empty());
}

TEST(StoredJob, RemembersHowManyFramesOfAClipAreUsed) {
  v1::GenerationRequest request = good_request();
  request.mutable_conditioning()->set_mp4_clip("clip");
  GenerationSpec spec = good_spec(request);
  spec.n_conditioning_frames = 5;  // what the server read from the clip's header
  const auto job = parse_stored_job(encode_stored_spec(spec), encode_stored_input(request.conditioning(), 5));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.n_conditioning_frames, 5);
  EXPECT_EQ(job->conditioning.mp4_clip, "clip");
}

// Any valid request gives a spec that survives storage unchanged, whatever the model's defaults are by then.
TEST(StoredJob, KeepsEveryFieldOfTheSpec) {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    v1::GenerationRequest request = good_request(1 + 4 * static_cast<int>(random() % 10));
    request.set_prompt(std::string(random() % 50, 'p'));
    request.set_negative_prompt(std::string(random() % 50, 'n'));
    request.set_fps(static_cast<std::uint32_t>(1 + random() % 120));
    request.set_seed(random());
    request.set_steps(static_cast<std::uint32_t>(1 + random() % 200));
    request.set_guidance_scale(1 + static_cast<double>(random() % 2900) / 100);
    request.set_shift(0.01 + static_cast<double>(random() % 9000) / 100);
    request.set_solver(random() % 2 == 0 ? v1::SOLVER_EULER : v1::SOLVER_DPMPP_2M);
    request.set_sigma_grid(static_cast<v1::SigmaGrid>(random() % 6));
    request.set_output(static_cast<v1::OutputFormat>(1 + random() % 3));
    const GenerationSpec spec = good_spec(request);
    const auto job = parse_stored_job(encode_stored_spec(spec), "");
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(job->spec.model, spec.model);
    EXPECT_EQ(job->spec.encoding, spec.encoding);
    EXPECT_EQ(job->spec.prompt, spec.prompt);
    EXPECT_EQ(job->spec.negative_prompt, spec.negative_prompt);
    EXPECT_EQ(job->spec.width, spec.width);
    EXPECT_EQ(job->spec.height, spec.height);
    EXPECT_EQ(job->spec.n_frames, spec.n_frames);
    EXPECT_EQ(job->spec.fps, spec.fps);
    EXPECT_EQ(job->spec.seed, spec.seed);
    EXPECT_EQ(job->spec.steps, spec.steps);
    EXPECT_EQ(job->spec.guidance_scale, spec.guidance_scale);
    EXPECT_EQ(job->spec.shift, spec.shift);
    EXPECT_EQ(job->spec.solver, spec.solver);
    EXPECT_EQ(job->spec.sigma_grid, spec.sigma_grid);
    EXPECT_EQ(job->spec.output, spec.output);
    EXPECT_EQ(job->spec.trajectory.frames.size(), spec.trajectory.frames.size());
    EXPECT_EQ(job->spec.trajectory.frames.back().time_s, spec.trajectory.frames.back().time_s);
  }
}

TEST(StoredJob, OfGarbageIsDataLoss) {
  const std::string spec = encode_stored_spec(good_spec(good_request()));
  EXPECT_EQ(parse_stored_job("\xff\xff", "").error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(parse_stored_job(spec, "\xff\xff").error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(parse_stored_job(spec.substr(0, spec.size() / 2), "").error().code, ErrorCode::kDataLoss);

  v1::StoredSpec newer;
  newer.set_version(3);
  EXPECT_EQ(parse_stored_job(newer.SerializeAsString(), "").error().code, ErrorCode::kFailedPrecondition);
  v1::StoredSpec empty;
  empty.set_version(1);
  EXPECT_EQ(parse_stored_job(empty.SerializeAsString(), "").error().message, "stored spec lacks a field");
}

TEST(StoredJob, NamesTheOldestVersionThatCanRunIt) {
  const auto version = [](const GenerationSpec& spec) {
    v1::StoredSpec stored;
    EXPECT_TRUE(stored.ParseFromString(encode_stored_spec(spec)));
    return stored.version();
  };
  GenerationSpec spec = good_spec(good_request());
  EXPECT_EQ(version(spec), 1U);
  spec.sigma_grid = SigmaGrid::kWanUniPc;
  EXPECT_EQ(version(spec), 2U);
  spec = good_spec(good_request());
  spec.solver = Solver::kDpm2M;
  EXPECT_EQ(version(spec), 2U);
}

TEST(StreamEvents, SplitLargeFragmentsBelowTheEntryLimit) {
  std::string bytes(3 * kMaxFragmentPartBytes + 1, 'a');
  bytes.back() = 'z';
  const std::vector<std::string> parts = encode_fragment(bytes, 4'000'000'000U, 4'000'000'000U, 4'000'000'000U);
  ASSERT_EQ(parts.size(), 4U);
  std::string joined;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_LE(parts[i].size(), std::size_t{248} * 1024);
    const auto event = parse_stream_event(parts[i]);
    ASSERT_TRUE(event);
    joined += event->fragment().data();
    EXPECT_EQ(event->fragment().last_part(), i == 3);
    EXPECT_EQ(event->fragment().n_frames(), 4'000'000'000U);
  }
  EXPECT_EQ(joined, bytes);
}

TEST(StreamEvents, ComeBack) {
  EXPECT_EQ(parse_stream_event(encode_started("w", 3, 2))->started().epoch(), 3U);
  const auto progress = parse_stream_event(encode_progress(v1::STAGE_DENOISE, 2, 4, 1.5));
  EXPECT_EQ(progress->progress().stage(), v1::STAGE_DENOISE);
  EXPECT_EQ(progress->progress().seconds_left(), 1.5);
  EXPECT_FALSE(parse_stream_event(encode_progress(v1::STAGE_DENOISE, 2, 4, std::nullopt))->progress().has_seconds_left());
  const auto failed = parse_stream_event(encode_failed({ErrorCode::kInternal, "reason"}));
  EXPECT_EQ(failed->failed().code(), 13);
  const auto finished = parse_stream_event(encode_finished({9, 7, 100, "ab", {{v1::STAGE_TEXT, 0.5}}}));
  EXPECT_EQ(finished->finished().stage_seconds(0).seconds(), 0.5);
  EXPECT_EQ(parse_stream_event("").error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(parse_stream_event("garbage").error().code, ErrorCode::kDataLoss);
}

TEST(Announcement, ComesBack) {
  const auto worker = parse_announcement(encode_announcement({"w-1", "cpu", "0.1.0", toy_model()}));
  ASSERT_TRUE(worker);
  EXPECT_EQ(worker->name, "w-1");
  EXPECT_EQ(worker->model.name, "toy");
  EXPECT_EQ(parse_announcement("").error().code, ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace merope::wire
