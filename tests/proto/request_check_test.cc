#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "proto/wire/capabilities_codec.h"
#include "proto/wire/generation_codec.h"
#include "tests/support/proto/requests.h"

namespace merope::wire {
namespace {

using testing::good_request;
using testing::toy_model;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<FieldViolation> violations_of(const v1::GenerationRequest& request) {
  const std::vector<ModelDescription> models = {toy_model()};
  return check_request(request, models, GenerationLimits{}, 7).violations.take();
}

std::string text_of(const std::vector<FieldViolation>& violations) {
  return invalid_fields(violations).message;
}

TEST(CheckRequest, FillsEveryDefaultInFromTheModel) {
  const std::vector<ModelDescription> models = {toy_model()};
  CheckedRequest checked = check_request(good_request(), models, GenerationLimits{}, 7);
  ASSERT_TRUE(checked.violations.empty()) << text_of(checked.violations.take());
  EXPECT_EQ(checked.spec.model, "toy");
  EXPECT_EQ(checked.spec.encoding, "merope");
  EXPECT_EQ(checked.spec.width, 64);
  EXPECT_EQ(checked.spec.height, 32);
  EXPECT_EQ(checked.spec.n_frames, 9);
  EXPECT_EQ(checked.spec.fps, 8);
  EXPECT_EQ(checked.spec.seed, 7U);
  EXPECT_EQ(checked.spec.steps, 4);
  EXPECT_EQ(checked.spec.guidance_scale, toy_model().default_guidance_scale);
  EXPECT_EQ(checked.spec.shift, toy_model().default_shift);
  EXPECT_EQ(checked.spec.solver, Solver::kUniPc);
  EXPECT_EQ(checked.spec.sigma_grid, std::nullopt);
  EXPECT_EQ(checked.spec.output, OutputFormat::kH264);
  EXPECT_EQ(checked.spec.n_conditioning_frames, 0);
  EXPECT_EQ(checked.terms.priority, v1::PRIORITY_NORMAL);
  EXPECT_EQ(checked.terms.max_queue_wait.count(), 0);
  EXPECT_DOUBLE_EQ(checked.spec.trajectory.frames[8].time_s, 1.0);
}

TEST(CheckRequest, TakesWhatTheRequestSays) {
  v1::GenerationRequest request = good_request();
  request.set_request_id("a.b_c-1");
  request.set_model("toy");
  request.set_encoding("none");
  request.set_width(128);
  request.set_height(64);
  request.set_frames(9);
  request.set_fps(120);
  request.set_seed(std::numeric_limits<std::uint64_t>::max());
  request.set_steps(200);
  request.set_guidance_scale(1);
  request.set_shift(0.01);
  request.set_solver(v1::SOLVER_EULER);
  request.set_sigma_grid(v1::SIGMA_GRID_WAN_UNIPC);
  request.set_output(v1::OUTPUT_FORMAT_PNG_FRAMES);
  request.set_priority(v1::PRIORITY_HIGH);
  request.mutable_max_queue_wait()->set_seconds(1);
  request.mutable_max_run_time()->set_seconds(86400);
  for (int i = 0; i < 5; ++i) {
    request.mutable_conditioning()->mutable_pictures()->add_files("bytes");
  }
  const std::vector<ModelDescription> models = {toy_model()};
  CheckedRequest checked = check_request(request, models, GenerationLimits{}, 7);
  ASSERT_TRUE(checked.violations.empty()) << text_of(checked.violations.take());
  EXPECT_EQ(checked.terms.request_id, "a.b_c-1");
  EXPECT_EQ(checked.spec.encoding, "none");
  EXPECT_EQ(checked.spec.fps, 120);
  EXPECT_EQ(checked.spec.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(checked.spec.solver, Solver::kEuler);
  EXPECT_EQ(checked.spec.sigma_grid, SigmaGrid::kWanUniPc);
  EXPECT_EQ(checked.spec.output, OutputFormat::kPngFrames);
  EXPECT_EQ(checked.spec.n_conditioning_frames, 5);
  EXPECT_EQ(checked.terms.max_queue_wait.count(), 1000);
  EXPECT_EQ(checked.terms.max_run_time.count(), 86'400'000);
  // The lens was given for 64x32 and the clip is twice as large.
  const auto& lens = std::get<camera::Pinhole>(checked.spec.trajectory.frames[0].lens.model);
  EXPECT_DOUBLE_EQ(lens.fx, 80);
  EXPECT_DOUBLE_EQ(lens.cy, 32);
}

struct BadInput {
  const char* name;
  std::function<void(v1::GenerationRequest&)> spoil;
  const char* field;        // of the violation
  const char* description;  // part of it
};

class EveryBadInput : public ::testing::TestWithParam<BadInput> {};

TEST_P(EveryBadInput, IsNamedWithFieldAndValue) {
  v1::GenerationRequest request = good_request();
  GetParam().spoil(request);
  const std::vector<FieldViolation> violations = violations_of(request);
  ASSERT_EQ(violations.size(), 1U) << text_of(violations);
  EXPECT_EQ(violations[0].field, GetParam().field);
  EXPECT_NE(violations[0].description.find(GetParam().description), std::string::npos) << violations[0].description;
}

using Request = v1::GenerationRequest;
v1::TrajectoryFrame& frame(Request& r, int i) {
  return *r.mutable_trajectory()->mutable_frames(i);
}
void conditioning(Request& r, int n) {
  for (int i = 0; i < n; ++i) {
    r.mutable_conditioning()->mutable_pictures()->add_files("x");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fields,
    EveryBadInput,
    ::testing::Values(
        BadInput{"RequestIdWithSpace", [](Request& r) { r.set_request_id("a b"); }, "request_id", "1 to 128"},
        BadInput{"RequestIdTooLong", [](Request& r) { r.set_request_id(std::string(129, 'a')); }, "request_id", "1 to 128"},
        BadInput{"UnknownModel", [](Request& r) { r.set_model("other"); }, "model", "\"other\"; there are: toy"},
        BadInput{"UnknownEncoding", [](Request& r) { r.set_encoding("gta"); }, "encoding", "\"gta\"; it has: merope, none"},
        BadInput{"PromptTooLong", [](Request& r) { r.set_prompt(std::string(8193, 'x')); }, "prompt", "8193"},
        BadInput{"NegativePromptTooLong",
                 [](Request& r) { r.set_negative_prompt(std::string(9000, 'x')); },
                 "negative_prompt",
                 "9000"},
        BadInput{"WidthNotDivisible", [](Request& r) { r.set_width(65); }, "width", "65 is not a multiple of 32"},
        BadInput{"HeightNotDivisible", [](Request& r) { r.set_height(48); }, "height", "48 is not a multiple of 32"},
        BadInput{"WidthAbsurd", [](Request& r) { r.set_width(4'000'000'000U); }, "width", "4000000000"},
        BadInput{"TooManyPixels",
                 [](Request& r) { r.set_width(4096), r.set_height(2048); },
                 "width",
                 "4096x2048 is 8388608 pixels"},
        BadInput{"FramesNot4nPlus1", [](Request& r) { r.set_frames(10); }, "frames", "4n+1"},
        BadInput{"FramesNotThoseOfTheTrajectory",
                 [](Request& r) { r.set_frames(13); },
                 "trajectory.frames",
                 "has 9 frames, but the clip has 13"},
        BadInput{"FramesOverTheLimit", [](Request& r) { r.set_frames(4'000'000'001U); }, "frames", "at most 257"},
        BadInput{"TrajectoryOverTheLimit",
                 [](Request& r) { r = good_request(261); },
                 "trajectory.frames",
                 "261 frames; at most 257"},
        BadInput{"TrajectoryOfEightFrames",
                 [](Request& r) { r.mutable_trajectory()->mutable_frames()->RemoveLast(); },
                 "trajectory.frames",
                 "8 frames; the number must be 4n+1"},
        BadInput{"NoTrajectory", [](Request& r) { r.clear_trajectory(); }, "trajectory", "required"},
        BadInput{"EmptyTrajectory",
                 [](Request& r) { r.mutable_trajectory()->clear_frames(); },
                 "trajectory.frames",
                 "empty"},
        BadInput{"FpsTooHigh", [](Request& r) { r.set_fps(121); }, "fps", "121"},
        BadInput{"TooManySteps", [](Request& r) { r.set_steps(201); }, "steps", "201 is not between 1 and 200"},
        BadInput{"GuidanceTooLow", [](Request& r) { r.set_guidance_scale(0.5); }, "guidance_scale", "0.5"},
        BadInput{"GuidanceNaN", [](Request& r) { r.set_guidance_scale(kNaN); }, "guidance_scale", "nan"},
        BadInput{"ShiftZero", [](Request& r) { r.set_shift(0); }, "shift", "0 is not between 0.01 and 100"},
        BadInput{"UnknownSolver", [](Request& r) { r.set_solver(static_cast<v1::Solver>(9)); }, "solver", "unknown value 9"},
        BadInput{"UnknownSigmaGrid",
                 [](Request& r) { r.set_sigma_grid(static_cast<v1::SigmaGrid>(9)); },
                 "sigma_grid",
                 "unknown value 9"},
        BadInput{"SigmaGridFromOneForUniPc",
                 [](Request& r) {
                   r.set_solver(v1::SOLVER_UNIPC);
                   r.set_sigma_grid(v1::SIGMA_GRID_WAN_DPM);
                 },
                 "sigma_grid",
                 "SIGMA_GRID_WAN_DPM starts at 1, which the solver SOLVER_UNIPC can not"},
        BadInput{"UnknownOutput",
                 [](Request& r) { r.set_output(static_cast<v1::OutputFormat>(44)); },
                 "output",
                 "unknown value 44"},
        BadInput{"UnknownPriority",
                 [](Request& r) { r.set_priority(static_cast<v1::Priority>(-1)); },
                 "priority",
                 "unknown value -1"},
        BadInput{"QueueWaitTooShort",
                 [](Request& r) { r.mutable_max_queue_wait()->set_nanos(999'999'999); },
                 "max_queue_wait",
                 "0 s and 999999999 ns"},
        BadInput{"RunTimeTooLong",
                 [](Request& r) { r.mutable_max_run_time()->set_seconds(86'401); },
                 "max_run_time",
                 "86401 s"},
        BadInput{"RunTimeWithBadNanos",
                 [](Request& r) { r.mutable_max_run_time()->set_seconds(5), r.mutable_max_run_time()->set_nanos(-1); },
                 "max_run_time",
                 "-1 ns"},
        BadInput{"TwoPictures", [](Request& r) { conditioning(r, 2); }, "conditioning.pictures.files", "2 frames"},
        BadInput{"NoPictures",
                 [](Request& r) { r.mutable_conditioning()->mutable_pictures(); },
                 "conditioning.pictures.files",
                 "0 frames"},
        BadInput{"AsManyPicturesAsFrames",
                 [](Request& r) { conditioning(r, 9); },
                 "conditioning.pictures.files",
                 "fewer than the 9"},
        BadInput{"ConditioningOfNothing", [](Request& r) { r.mutable_conditioning(); }, "conditioning", "neither"},
        BadInput{"ClipFramesOfPictures",
                 [](Request& r) { conditioning(r, 1), r.mutable_conditioning()->set_clip_frames(1); },
                 "conditioning.clip_frames",
                 "belongs to mp4_clip"},
        BadInput{"ClipFramesNot4nPlus1",
                 [](Request& r) {
                   r.mutable_conditioning()->set_mp4_clip("x");
                   r.mutable_conditioning()->set_clip_frames(4);
                 },
                 "conditioning.clip_frames",
                 "4 frames"}),
    [](const auto& param_info) { return param_info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Trajectories,
    EveryBadInput,
    ::testing::Values(
        BadInput{"NoPoseDirection",
                 [](Request& r) { r.mutable_trajectory()->clear_pose_direction(); },
                 "trajectory.pose_direction",
                 "required"},
        BadInput{"UnknownPoseDirection",
                 [](Request& r) { r.mutable_trajectory()->set_pose_direction(static_cast<v1::PoseDirection>(3)); },
                 "trajectory.pose_direction",
                 "unknown value 3"},
        BadInput{"NoCameraAxes",
                 [](Request& r) { r.mutable_trajectory()->clear_camera_axes(); },
                 "trajectory.camera_axes",
                 "required"},
        BadInput{"NoLengthUnit",
                 [](Request& r) { r.mutable_trajectory()->clear_length_unit(); },
                 "trajectory.length_unit",
                 "required"},
        BadInput{"ElevenNumbers",
                 [](Request& r) { frame(r, 3).mutable_pose()->RemoveLast(); },
                 "trajectory.frames[3].pose",
                 "11 numbers"},
        BadInput{"LastRowWrong",
                 [](Request& r) {
                   for (const double number : {0.0, 0.0, 0.0, 2.0}) {
                     frame(r, 3).add_pose(number);
                   }
                 },
                 "trajectory.frames[3].pose",
                 "last row is 0 0 0 2"},
        BadInput{"NaNInTranslation",
                 [](Request& r) { frame(r, 8).set_pose(11, kNaN); },
                 "trajectory.frames[8].pose[11]",
                 "nan is not a finite number"},
        BadInput{"NotOrthonormal",
                 [](Request& r) { frame(r, 5).set_pose(0, 1.1); },
                 "trajectory.frames[5].pose",
                 "not orthonormal"},
        BadInput{"LeftHanded", [](Request& r) { frame(r, 2).set_pose(0, -1); }, "trajectory.frames[2].pose", "left-handed"},
        BadInput{"TimesDoNotIncrease",
                 [](Request& r) {
                   for (int i = 0; i < 9; ++i) {
                     frame(r, i).set_time_s(i == 4 ? 3.0 : i);
                   }
                 },
                 "trajectory.frames[4].time_s",
                 "3 is not after 3"},
        BadInput{"SomeTimes", [](Request& r) { frame(r, 4).set_time_s(1); }, "trajectory.frames", "1 of 9 frames"},
        BadInput{"NoLens", [](Request& r) { r.mutable_trajectory()->clear_lens(); }, "trajectory.lens", "required"},
        BadInput{"ZeroFocalLength",
                 [](Request& r) { r.mutable_trajectory()->mutable_lens()->mutable_pinhole()->set_fx(0); },
                 "trajectory.lens.pinhole.fx",
                 "0"},
        BadInput{"PrincipalPointOutside",
                 [](Request& r) { r.mutable_trajectory()->mutable_lens()->mutable_pinhole()->set_cy(33); },
                 "trajectory.lens.pinhole.cy",
                 "33"},
        BadInput{"NoLensModel",
                 [](Request& r) { r.mutable_trajectory()->mutable_lens()->clear_pinhole(); },
                 "trajectory.lens.model",
                 "pinhole"},
        BadInput{"LensWithoutSize",
                 [](Request& r) { r.mutable_trajectory()->mutable_lens()->set_width(0); },
                 "trajectory.lens.width",
                 "0"},
        BadInput{"OtherAspectRatio",
                 [](Request& r) { r.mutable_trajectory()->mutable_lens()->set_width(66); },
                 "trajectory.lens",
                 "66x32"},
        BadInput{"BrokenLensOfOneFrame",
                 [](Request& r) {
                   *frame(r, 6).mutable_lens() = r.trajectory().lens();
                   frame(r, 6).mutable_lens()->mutable_pinhole()->set_fy(kNaN);
                 },
                 "trajectory.frames[6].lens.pinhole.fy",
                 "nan"}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(CheckRequest, NamesAllViolationsAtOnce) {
  v1::GenerationRequest request = good_request();
  request.set_model("other");
  request.set_fps(500);
  request.set_solver(static_cast<v1::Solver>(9));
  frame(request, 1).set_pose(0, kNaN);
  frame(request, 7).set_pose(0, 2);
  std::vector<std::string> fields;
  for (const FieldViolation& violation : violations_of(request)) {
    fields.push_back(violation.field);
  }
  std::sort(fields.begin(), fields.end());
  EXPECT_EQ(
      fields,
      (std::vector<std::string>{"fps", "model", "solver", "trajectory.frames[1].pose[0]", "trajectory.frames[7].pose"}));
}

TEST(CheckRequest, StopsAtThirtyTwoViolations) {
  v1::GenerationRequest request = good_request(49);
  for (int i = 0; i < 49; ++i) {
    frame(request, i).set_pose(0, kNaN);
  }
  EXPECT_EQ(violations_of(request).size(), Violations::kMax);
}

TEST(CheckRequest, WantsAModelNamedWhenThereAreSeveral) {
  ModelDescription second = toy_model();
  second.name = "second";
  const std::vector<ModelDescription> models = {toy_model(), second};
  CheckedRequest unnamed = check_request(good_request(), models, GenerationLimits{}, 1);
  ASSERT_EQ(unnamed.violations.size(), 1U);
  EXPECT_EQ(unnamed.violations.list()[0].description, "is required, the service has several: toy, second");

  v1::GenerationRequest request = good_request();
  request.set_model("second");
  EXPECT_EQ(check_request(request, models, GenerationLimits{}, 1).spec.model, "second");
}

// What a client sends comes back in messages, but not megabytes of it.
TEST(CheckRequest, ShowsOnlyTheBeginningOfALongName) {
  for (const bool is_model : {true, false}) {
    v1::GenerationRequest request = good_request();
    is_model ? request.set_model(std::string(1'000'000, 'm')) : request.set_encoding(std::string(1'000'000, 'm'));
    const std::vector<FieldViolation> violations = violations_of(request);
    ASSERT_EQ(violations.size(), 1U);
    EXPECT_LT(violations[0].description.size(), 200U);
    EXPECT_NE(violations[0].description.find("1000000 bytes"), std::string::npos);
  }
}

TEST(RequestDigest, LeavesTheRequestIdOutAndNothingElse) {
  v1::GenerationRequest request = good_request();
  const std::string without_id = request_digest(request);
  request.set_request_id("first");
  EXPECT_EQ(request_digest(request), without_id);
  request.set_request_id("second-and-longer");
  EXPECT_EQ(request_digest(request), without_id);
  EXPECT_EQ(without_id.size(), 64U);
  request.set_seed(0);
  EXPECT_NE(request_digest(request), without_id);
}

TEST(ModelCodec, BringsAModelBack) {
  const ModelDescription model = toy_model();
  const auto back = parse_model(serialize_model(model));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->name, model.name);
  EXPECT_EQ(back->encodings, model.encodings);
  EXPECT_EQ(back->default_width, model.default_width);
  EXPECT_EQ(back->default_shift, model.default_shift);
  EXPECT_FALSE(back->trained);

  v1::ModelCapabilities broken = serialize_model(model);
  broken.set_size_multiple(0);
  EXPECT_EQ(parse_model(broken).error().code, ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace merope::wire
