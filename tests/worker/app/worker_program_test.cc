// merope-worker itself, with a small checkpoint: what it says when it can not start, and one job from the queue to the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/exit_codes.h"
#include "core/base/sha256.h"
#include "core/media/picture_decoder.h"
#include "core/queue/queue_factory.h"
#include "tests/support/fake_engine.h"
#include "tests/support/redis_server.h"
#include "tests/worker/app/child_process.h"

namespace merope {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class WorkerProgram : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = (fs::temp_directory_path() / "merope_worker_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    const char* source = std::getenv("MEROPE_SOURCE_DIR");
    test::ChildProcess maker(
        "/usr/bin/python3",
        {std::string(source == nullptr ? "." : source) + "/worker/tools/make_toy_checkpoint.py", model()});
    ASSERT_EQ(maker.wait(), 0);
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static std::string model() { return (folder_ / "toy").string(); }
  static std::string log_file() { return (folder_ / "stderr").string(); }
  static std::string log() {
    std::ostringstream text;
    text << std::ifstream(log_file()).rdbuf();
    return text.str();
  }
  std::unique_ptr<test::ChildProcess> start(const std::string& model_folder, std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"--redis-url", redis_.url(), "--model", model_folder, "--log-format", "json"});
    if (std::find(flags.begin(), flags.end(), "--admin-port") == flags.end()) {
      flags.insert(flags.end(), {"--admin-port", "0"});
    }
    return std::make_unique<test::ChildProcess>(test::binary_dir() + "/bin/merope-worker", std::move(flags), log_file());
  }

  inline static fs::path folder_;
  test::RedisServer redis_;
};

TEST_F(WorkerProgram, SaysWhyItCanNotStart) {
  EXPECT_EQ(start("")->wait(), kExitUsage);
  EXPECT_THAT(log(), HasSubstr("--model"));

  EXPECT_EQ(start(model() + "-elsewhere")->wait(), kExitNoInput);
  EXPECT_THAT(log(), HasSubstr("toy-elsewhere: no such model folder"));

  const int taken = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(taken, 1), 0);
  ASSERT_EQ(::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  EXPECT_EQ(start(model(), {"--admin-port", port})->wait(), kExitConfig);
  EXPECT_THAT(log(), HasSubstr("127.0.0.1:" + port));
  ::close(taken);

  redis_.kill();
  EXPECT_EQ(start(model())->wait(), kExitUnavailable);
  EXPECT_THAT(log(), HasSubstr("can not be reached"));
}

TEST_F(WorkerProgram, RefusesBrokenWeights) {
  const fs::path broken = folder_ / "broken";
  fs::copy(model(), broken, fs::copy_options::recursive);
  fs::path weights;
  for (const auto& entry : fs::directory_iterator(broken / "transformer")) {
    if (entry.path().extension() == ".safetensors") {
      weights = entry.path();
    }
  }
  ASSERT_FALSE(weights.empty());
  fs::resize_file(weights, fs::file_size(weights) - 1000);
  EXPECT_EQ(start(broken.string())->wait(), kExitData);
  EXPECT_THAT(log(), HasSubstr(weights.filename().string()));
}

TEST_F(WorkerProgram, TurnsAJobIntoAClip) {
  const auto queue = *queue::open_queue(redis_.url());
  const auto submitter = queue->submitter();
  const auto events = queue->events();
  const auto worker = start(model(), {"--name", "real"});
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  std::vector<queue::WorkerRecord> workers;
  while (workers.empty() && std::chrono::steady_clock::now() < deadline) {
    (void)events->wait_for_wakeups(100ms);
    workers = *submitter->workers();
  }
  ASSERT_EQ(workers.size(), 1U) << log();
  const auto announced = wire::parse_announcement(workers[0].announcement);
  ASSERT_TRUE(announced);

  GenerationSpec spec = test::fake_spec();
  spec.model = announced->model.name;
  spec.encoding = announced->model.encodings.front();
  spec.width = 64;
  spec.height = 64;
  for (camera::TrajectoryFrame& frame : spec.trajectory.frames) {
    frame.lens = {64, 64, camera::Pinhole{60, 60, 32, 32}};
  }
  spec.n_conditioning_frames = 1;
  const std::string id =
      submitter->submit(test::fake_job(spec, "r", {*media::encode_png(test::fake_frame(spec, 0), 0)}))->job_id;
  while (!queue::is_terminal(submitter->get(id)->state) && std::chrono::steady_clock::now() < deadline) {
    (void)events->wait_for_wakeups(200ms);
  }
  const test::ReadStream stream = test::read_stream(*events, id);
  EXPECT_EQ(stream.record.state, queue::JobState::kSucceeded) << stream.record.message;
  EXPECT_EQ(stream.error, "");
  ASSERT_NE(stream.finished(), nullptr);
  EXPECT_EQ(stream.finished()->sha256(), sha256_hex(stream.file));
  EXPECT_TRUE(media::decode_clip(stream.file, 64, 64, 9));
  worker->send(SIGTERM);
  EXPECT_EQ(worker->wait(), kExitOk);
  for (const char* event : {"worker ready", "job claimed", "job finished", "worker stopped"}) {
    EXPECT_THAT(log(), HasSubstr(event));
  }
}

}  // namespace
}  // namespace merope
