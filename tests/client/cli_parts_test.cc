// The parts of merope-cli that need neither a server nor a terminal.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "client/cli/cli_options.h"
#include "client/cli/exit_status.h"
#include "client/cli/printing.h"
#include "client/cli/progress.h"
#include "client/cli/request_builder.h"
#include "core/base/ids.h"
#include "tests/client/scripted_server.h"

namespace merope::cli {
namespace {

namespace fs = std::filesystem;
using client::fragment_event;

TEST(SizeOption, TakesWidthAndHeightAndNothingElse) {
  EXPECT_EQ(*parse_size("512x288"), (PictureSize{512, 288}));
  for (const char* text :
       {"", "512", "512x", "x288", "512x288x1", "0x288", "-1x5", "512 x 288", "70000x4", "1e3x4", "99999999999x4"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(LensOption, TakesSixNumbersInsideThePicture) {
  const auto lens = parse_lens("pinhole:718.856,718.5,607.1928,185.2157,1241,376");
  ASSERT_TRUE(lens) << lens.error().message;
  EXPECT_EQ(*lens, (PinholeOption{718.856, 718.5, 607.1928, 185.2157, {1241, 376}}));
  for (const char* text : {"718,718,607,185,1241,376",
                           "pinhole:718,718,607,185,1241",
                           "pinhole:0,718,607,185,1241,376",
                           "pinhole:718,718,2000,185,1241,376",
                           "pinhole:nan,718,607,185,1241,376",
                           "pinhole:718,inf,607,185,1241,376",
                           "pinhole:a,718,607,185,1241,376",
                           "fisheye:1,1,1,1,2,2",
                           "pinhole:718,718,607,185,0,376"}) {
    EXPECT_FALSE(parse_lens(text)) << text;
  }
}

TEST(LensOption, FieldOfViewSpansThePicture) {
  const PinholeOption lens = lens_from_fov(90, {512, 288});
  EXPECT_NEAR(lens.fx, 256, 1e-9);
  EXPECT_EQ(lens.fx, lens.fy);
  EXPECT_EQ(lens.cx, 256);
  EXPECT_EQ(lens.cy, 144);
}

v1::JobEvent denoise(std::uint32_t step, std::uint32_t steps) {
  v1::JobEvent event;
  event.mutable_progress()->set_stage(v1::STAGE_DENOISE);
  event.mutable_progress()->set_step(step);
  event.mutable_progress()->set_steps(steps);
  event.mutable_progress()->set_seconds_left(65);
  return event;
}

TEST(ProgressView, RedrawsOneLineOnATerminal) {
  ProgressView view(100);
  EXPECT_EQ(view.update(denoise(25, 50)), "\r\x1b[Kdenoise  [###############...............] 25/50  1:05 min left");
  EXPECT_EQ(view.update(denoise(25, 50)), "") << "nothing new";
  v1::JobEvent restarted;
  restarted.mutable_restarted()->set_epoch(2);
  EXPECT_EQ(view.update(restarted), "\r\x1b[Kthe worker was lost; the job begins again\n");
  EXPECT_EQ(view.clear(), "") << "no half line is left";
  EXPECT_EQ(ProgressView(20).update(denoise(1, 2)).size(), std::string("\r\x1b[K").size() + 19) << "cut to the terminal";
}

TEST(ProgressView, SaysAFewPlainLinesElsewhere) {
  ProgressView view(0);
  std::string text;
  int n_lines = 0;
  for (std::uint32_t step = 0; step <= 200; ++step) {
    const std::string line = view.update(denoise(step, 200));
    n_lines += line.empty() ? 0 : 1;
    text += line;
  }
  EXPECT_EQ(n_lines, 11);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_TRUE(text.ends_with("denoise 200/200  1:05 min left\n")) << text;
  EXPECT_EQ(view.update(denoise(9, 0)).find("nan"), std::string::npos) << "a stage without steps";
}

TEST(Texts, SayDurationsAndSizesAsPeopleDo) {
  EXPECT_EQ(duration_text(-3), "0 s");
  EXPECT_EQ(duration_text(59.2), "1:00 min");
  EXPECT_EQ(duration_text(3700), "1:01 h");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(1'234'567), "1.2 MB");
}

TEST(JsonLines, FragmentsTellTheirSizeAndKeepTheirBytes) {
  EXPECT_EQ(
      json_line(fragment_event(1, 2, "\x01\x02\x03")),
      R"({"cursor":{"epoch":"1","seq":"2"},"fragment":{"first_frame":0,"fragment_index":0,"last_part":true,"n_bytes":3,)"
      R"("n_frames":0},"job_id":"job-1"})"
      "\n");
  const Error error = invalid_fields({{"frames", "50 is not 4n+1"}});
  EXPECT_EQ(
      json_line(error),
      R"({"error":{"code":"INVALID_ARGUMENT","message":"frames: 50 is not 4n+1","violations":[{"description":"50 is not )"
      R"(4n+1","field":"frames"}]}})"
      "\n");
  EXPECT_EQ(error_text(error), "the request was refused (INVALID_ARGUMENT):\n  frames: 50 is not 4n+1\n");
}

TEST(JobTexts, NameStateReasonAndTimes) {
  v1::Job job;
  job.set_job_id("job-1");
  job.set_state(v1::JOB_STATE_FAILED);
  job.set_priority(v1::PRIORITY_HIGH);
  job.set_code(13);
  job.set_message("denoise: not a number");
  job.set_submitted_unix_ms(1'700'000'000'000);
  const std::string text = job_text(job);
  for (const char* part : {"failed", "high", "2023-11-14 22:13:20Z", "INTERNAL: denoise: not a number"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  EXPECT_NE(job_table({job}).find("job-1  failed     high"), std::string::npos) << job_table({job});
}

class RequestBuilder : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }
  // n poses that walk forward a metre each.
  static std::string kitti(int n) {
    std::string text;
    for (int i = 0; i < n; ++i) {
      text += "1 0 0 0 0 1 0 0 0 0 1 " + std::to_string(i) + "\n";
    }
    return text;
  }
  Result<v1::GenerationRequest> build(const SubmitOptions& options) {
    return build_request(options, [this]() -> Result<v1::Capabilities> {
      ++n_asked_;
      v1::Capabilities capabilities;
      for (const std::string& name : models_) {
        auto* model = capabilities.add_models();
        model->set_name(name);
        model->set_default_width(64);
        model->set_default_height(32);
        model->set_default_fps(10);
      }
      return capabilities;
    });
  }
  std::string message(const SubmitOptions& options) {
    const auto request = build(options);
    return request ? "no error" : request.error().message;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / random_id("request");
  std::vector<std::string> models_ = {"toy"};
  int n_asked_ = 0;
};

TEST_F(RequestBuilder, CutsAPieceOutOfALongPoseFile) {
  SubmitOptions options;
  options.trajectory_file = file("00.txt", kitti(100));
  options.format = "kitti";
  options.first = 10;
  options.frames = 49;
  options.fps = 10;
  options.lens = *parse_lens("pinhole:718.856,718.856,607.1928,185.2157,1241,376");
  const auto request = build(options);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(n_asked_, 0) << "nothing of the model is needed";
  EXPECT_EQ(request->frames(), 49U);
  ASSERT_EQ(request->trajectory().frames_size(), 49);
  EXPECT_EQ(request->trajectory().pose_direction(), v1::POSE_DIRECTION_CAMERA_TO_WORLD);
  EXPECT_EQ(request->trajectory().frames(0).pose(11), 10.0);
  EXPECT_NEAR(request->trajectory().frames(1).time_s() - request->trajectory().frames(0).time_s(), 0.1, 1e-12);
  EXPECT_EQ(request->trajectory().lens().pinhole().fx(), 718.856);
  EXPECT_EQ(request->trajectory().lens().width(), 1241U);
}

TEST_F(RequestBuilder, NamesWhatIsWrongWithATrajectory) {
  SubmitOptions options;
  options.trajectory_file = file("00.txt", kitti(12));
  options.fps = 10;
  EXPECT_NE(message(options).find("--lens or --fov"), std::string::npos) << message(options);
  options.size = PictureSize{64, 32};
  options.fov_deg = 80;
  EXPECT_NE(message(options).find("12 poses; a clip has 4n+1 frames"), std::string::npos) << message(options);
  options.frames = 49;
  EXPECT_NE(message(options).find("--first 0 --frames 49 goes beyond its 12 poses"), std::string::npos) << message(options);
  options.trajectory_file = file("bad.txt", "1 0 0 0 0 1 0 0 0 0 1\n");
  EXPECT_NE(message(options).find("bad.txt: line 1"), std::string::npos) << message(options);
  options.trajectory_file = (folder_ / "none.txt").string();
  EXPECT_EQ(build(options).error().code, ErrorCode::kNotFound);
}

TEST_F(RequestBuilder, AShapeTakesItsDefaultsFromTheModel) {
  SubmitOptions options;
  options.shape = "straight:24m";
  const auto request = build(options);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(n_asked_, 1);
  EXPECT_EQ(request->frames(), 49U);
  EXPECT_EQ(request->fps(), 0U) << "left to the model";
  EXPECT_EQ(request->width(), 0U);
  EXPECT_EQ(request->trajectory().lens().width(), 64U);
  EXPECT_NEAR(request->trajectory().lens().pinhole().fx(), 32 / std::tan(std::acos(-1) / 6), 1e-9);
  EXPECT_NEAR(request->trajectory().frames(48).pose(11), 24, 1e-9);
  EXPECT_FALSE(request->has_seed());

  models_ = {"one", "two"};
  EXPECT_EQ(message(options), "--model: the service has several: one, two");
  options.model = "two";
  EXPECT_TRUE(build(options));
  models_.clear();
  EXPECT_EQ(build(options).error().code, ErrorCode::kUnavailable);
}

TEST_F(RequestBuilder, EveryOptionArrivesInTheRequest) {
  SubmitOptions options;
  options.shape = "straight:1m";
  options.frames = 9;
  options.fps = 12;
  options.size = PictureSize{128, 64};
  options.seed = 0;
  options.steps = 7;
  options.guidance = 1;
  options.shift = 3.5;
  options.solver = "dpmpp_2m";
  options.sigma_grid = "wan_dpm";
  options.model = "toy";
  options.encoding = "merope";
  options.prompt = "rain";
  options.negative_prompt = "sun";
  options.images = {file("a.png", "first"), file("b.png", "second")};
  options.output = "rgb";
  options.priority = "high";
  options.max_queue_wait_s = 1.5;
  options.max_run_time_s = 60;
  options.request_id = "mine";
  const auto request = build(options);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->fps(), 12U);
  EXPECT_EQ(request->width(), 128U);
  EXPECT_EQ(request->height(), 64U);
  EXPECT_TRUE(request->has_seed()) << "0 is a seed";
  EXPECT_EQ(request->steps(), 7U);
  EXPECT_EQ(request->guidance_scale(), 1);
  EXPECT_EQ(request->shift(), 3.5);
  EXPECT_EQ(request->solver(), v1::SOLVER_DPMPP_2M);
  EXPECT_EQ(request->sigma_grid(), v1::SIGMA_GRID_WAN_DPM);
  EXPECT_EQ(request->model(), "toy");
  EXPECT_EQ(request->encoding(), "merope");
  EXPECT_EQ(request->prompt(), "rain");
  EXPECT_EQ(request->negative_prompt(), "sun");
  EXPECT_EQ(request->conditioning().pictures().files(1), "second");
  EXPECT_EQ(request->output(), v1::OUTPUT_FORMAT_RGB_EXACT);
  EXPECT_EQ(request->priority(), v1::PRIORITY_HIGH);
  EXPECT_EQ(request->max_queue_wait().seconds(), 1);
  EXPECT_EQ(request->max_queue_wait().nanos(), 500'000'000);
  EXPECT_EQ(request->max_run_time().seconds(), 60);
  EXPECT_EQ(request->request_id(), "mine");

  options.images.clear();
  options.clip = file("known.mp4", "clip");
  options.clip_frames = 5;
  const auto with_clip = build(options);
  ASSERT_TRUE(with_clip);
  EXPECT_EQ(with_clip->conditioning().mp4_clip(), "clip");
  EXPECT_EQ(with_clip->conditioning().clip_frames(), 5U);
}

}  // namespace
}  // namespace merope::cli
