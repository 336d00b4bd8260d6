// The program merope-cli from outside: exit codes, what it prints, what it writes, and Ctrl-C.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "tests/client/scripted_server.h"

namespace merope::client {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// The running program; its output goes to files.
class Program {
 public:
  Program(const fs::path& folder, std::vector<std::string> arguments)
      : out_(folder / (random_id("out"))), err_(folder / random_id("err")) {
    arguments.insert(arguments.begin(), MEROPE_CLI);
    std::vector<char*> argv;
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    const std::string out = out_.string();
    const std::string err = err_.string();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
      ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
  ~Program() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void interrupt() const { ::kill(pid_, SIGINT); }
  std::string err_so_far() const { return content(err_); }

  Outcome wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content(out_), content(err_)};
  }

 private:
  const fs::path out_;
  const fs::path err_;
  pid_t pid_ = -1;
};

class CliTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(output());
    fs::create_directories(folder_ / "captured");
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path output() const { return folder_ / "output"; }
  std::size_t n_outputs() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(output()), fs::directory_iterator()));
  }
  std::vector<std::string> with_server(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"--server", server_.address()});
    return arguments;
  }
  std::vector<std::string> submit(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = with_server({"submit", "--shape", "straight:4m", "--frames", "5"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  Outcome run(std::vector<std::string> arguments) const {
    return Program(folder_ / "captured", std::move(arguments)).wait();
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / random_id("cli");
  ScriptedServer server_;
};

constexpr const char* kPng1 = "\x89PNG\r\n\x1a\n first";
constexpr const char* kPng2 = "\x89PNG\r\n\x1a\n second";

TEST_F(CliTest, HelpSaysEveryExitCodeAndVersionItself) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* part :
       {"submit", "watch", "status", "list", "cancel", "capabilities", "MEROPE_SERVER", "Exit codes", "  75 "}) {
    EXPECT_NE(help.out.find(part), std::string::npos) << part;
  }
  EXPECT_NE(run({"submit", "--help"}).out.find("--cancel-on-interrupt"), std::string::npos);
  EXPECT_EQ(run({"--version"}).out.substr(0, 7), "merope ");
}

TEST_F(CliTest, WrongCommandLinesSayWhatIsWrong) {
  struct Case {
    std::vector<std::string> arguments;
    std::string says;
  };
  const std::vector<Case> cases = {
      {{}, "subcommand"},
      {{"submit", "--trajectory", "a", "--format", "tum"}, "kitti"},
      {{"fly"}, "fly"},
      {{"submit"}, "--trajectory,--shape"},
      {{"submit", "--shape", "straight:1m", "--trajectory", "a"}, "--trajectory,--shape"},
      {{"submit", "--shape", "straight:1m", "--size", "12"}, "'12' is not a size"},
      {{"submit", "--shape", "straight:1m", "--lens", "pinhole:1"}, "pinhole:fx,fy,cx,cy,w,h"},
      {{"submit", "--shape", "straight:1m", "--fov", "200"}, "--fov"},
      {{"submit", "--shape", "straight:1m", "--output", "gif"}, "--output"},
      {{"submit", "--shape", "straight:1m", "--image", "a.png", "--clip", "b.mp4"}, "--clip"},
      {{"submit", "--shape", "straight:1m", "--request-id", "a b"}, "'a b'"},
      {{"status"}, "job"},
      {{"list", "--state", "gone"}, "--state"},
  };
  for (const Case& c : cases) {
    const Outcome outcome = run(c.arguments);
    EXPECT_EQ(outcome.exit_code, 64) << outcome.err;
    EXPECT_NE(outcome.err.find(c.says), std::string::npos) << c.says << " in " << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(CliTest, FilesThatAreWrongAreNamedAndNothingIsSubmitted) {
  const std::string missing = (folder_ / "missing.png").string();
  const Outcome no_file = run(submit({"--image", missing}));
  EXPECT_EQ(no_file.exit_code, 66);
  EXPECT_NE(no_file.err.find(missing), std::string::npos) << no_file.err;
  EXPECT_EQ(run(with_server({"submit", "--shape", "strait:1m"})).exit_code, 65);
  const Outcome no_place = run(submit({"-o", (folder_ / "missing" / "clip.mp4").string()}));
  EXPECT_EQ(no_place.exit_code, 73);
  EXPECT_NE(no_place.err.find("missing/clip.mp4"), std::string::npos) << no_place.err;
  EXPECT_TRUE(server_.submitted().empty());
}

TEST_F(CliTest, NoServerIsExit69WithItsAddress) {
  server_.stop();
  for (const auto& arguments : {with_server({"watch", "job-1"}), submit()}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
    EXPECT_NE(outcome.err.find(server_.address()), std::string::npos) << outcome.err;
  }
}

TEST_F(CliTest, SubmitWaitsAndWritesTheClip) {
  server_.script_watch({{.events = {started_event(1, 1), fragment_event(1, 2, "start "), fragment_event(1, 3, "rest")},
                         .error = unavailable("draining")},
                        {.events = {finished_event(1, 4, "start rest")}}});
  const fs::path clip = output() / "clip.mp4";
  const Outcome outcome = run(submit({"-o", clip.string(), "--seed", "7"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, clip.string() + "\n");
  EXPECT_EQ(content(clip), "start rest");
  EXPECT_EQ(n_outputs(), 1U);
  EXPECT_NE(outcome.err.find("started on worker-a"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("lost the server"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << "no terminal, no control characters";
  ASSERT_EQ(server_.submitted().size(), 1U);
  EXPECT_EQ(server_.submitted()[0].seed(), 7U);
  EXPECT_EQ(server_.submitted()[0].trajectory().frames_size(), 5);
}

TEST_F(CliTest, PngFramesBecomeAFolderAlsoWhenWatchedLater) {
  const std::string all = std::string(kPng1) + kPng2;
  const WatchScript script{.events = {fragment_event(1, 1, std::string(kPng1).substr(0, 9), false),
                                      fragment_event(1, 2, std::string(kPng1).substr(9)),
                                      fragment_event(1, 3, kPng2),
                                      finished_event(1, 4, all)}};
  server_.script_watch({script, script});
  EXPECT_EQ(run(submit({"--output", "png", "-o", (output() / "a").string()})).exit_code, 0);
  EXPECT_EQ(server_.submitted()[0].output(), v1::OUTPUT_FORMAT_PNG_FRAMES);
  EXPECT_EQ(run(with_server({"watch", "job-1", "-o", (output() / "b").string()})).exit_code, 0);
  for (const char* folder : {"a", "b"}) {
    EXPECT_EQ(content(output() / folder / "frame_00000.png"), kPng1);
    EXPECT_EQ(content(output() / folder / "frame_00001.png"), kPng2);
  }
}

TEST_F(CliTest, JsonIsOneObjectALineOnStandardOutput) {
  server_.script_watch({{.events = {started_event(1, 1), fragment_event(1, 2, "abc"), finished_event(1, 3, "abc")}}});
  auto arguments = submit({"-o", (output() / "clip.mp4").string()});
  arguments.insert(arguments.begin(), "--json");
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::vector<std::string> kinds;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.starts_with("{") && line.ends_with("}")) << line;
    for (const char* kind : {"accepted", "started", "fragment", "finished"}) {
      if (line.find("\"" + std::string(kind) + "\":{") != std::string::npos) {
        kinds.emplace_back(kind);
      }
    }
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"accepted", "started", "fragment", "finished"})) << outcome.out;
  EXPECT_EQ(outcome.err, "");
  // Also behind the subcommand, and for an error.
  const Outcome unknown = run(with_server({"status", "job-2", "--json"}));
  EXPECT_EQ(unknown.exit_code, 66);
  EXPECT_NE(unknown.out.find(R"("code":"NOT_FOUND")"), std::string::npos) << unknown.out;
}

TEST_F(CliTest, EveryEndHasItsExitCodeAndLeavesNoHalfClip) {
  const auto end_with = [&](WatchScript script) {
    script.events.insert(script.events.begin(), fragment_event(1, 1, "half"));
    server_.script_watch({script});
    const Outcome outcome = run(submit({"-o", (output() / "clip.mp4").string()}));
    EXPECT_EQ(n_outputs(), 0U);
    return outcome;
  };
  const Outcome failed = end_with({.events = {failed_event(1, 2, ErrorCode::kInternal, "denoise: not a number")}});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_NE(failed.err.find("denoise: not a number"), std::string::npos) << failed.err;
  EXPECT_EQ(end_with({.events = {failed_event(1, 2, ErrorCode::kCancelled, "cancelled")}}).exit_code, 2);
  EXPECT_EQ(end_with({.events = {finished_event(1, 3, "half")}}).exit_code, 70) << "a hole";
  EXPECT_EQ(end_with({.events = {finished_event(1, 2, "whole")}}).exit_code, 70) << "other bytes";
}

TEST_F(CliTest, RefusedRequestsNameEveryField) {
  server_.answer_submit({invalid_fields({{"frames", "50 is not 4n+1"}, {"steps", "0 is not 1 to 200"}})});
  const Outcome refused = run(submit());
  EXPECT_EQ(refused.exit_code, 65);
  EXPECT_NE(refused.err.find("  frames: 50 is not 4n+1\n  steps: 0 is not 1 to 200\n"), std::string::npos) << refused.err;
  server_.answer_submit({Error{ErrorCode::kResourceExhausted, "1000 jobs wait", {}}});
  EXPECT_EQ(run(submit()).exit_code, 75);
}

TEST_F(CliTest, DetachPrintsTheJobAndTheOthersAnswer) {
  EXPECT_EQ(run(submit({"--detach"})).out, "job-1\n");
  EXPECT_NE(run(with_server({"status", "job-1"})).out.find("running"), std::string::npos);
  EXPECT_NE(run(with_server({"list", "--state", "failed", "--limit", "2"})).out.find("failed"), std::string::npos);
  EXPECT_NE(run(with_server({"capabilities"})).out.find("model toy"), std::string::npos);
  EXPECT_EQ(run(with_server({"cancel", "job-1"})).exit_code, 0);
  EXPECT_EQ(server_.cancelled(), std::vector<std::string>{"job-1"});
  ::setenv("MEROPE_SERVER", server_.address().c_str(), 1);
  EXPECT_EQ(run({"status", "job-1"}).exit_code, 0) << "the address from the environment";
  ::unsetenv("MEROPE_SERVER");
}

TEST_F(CliTest, InterruptLeavesTheJobAloneAndSaysHowToGoOn) {
  server_.script_watch({{.events = {fragment_event(1, 1, "half")}, .hang = true}});
  Program program(folder_ / "captured", submit({"-o", (output() / "clip.mp4").string()}));
  ASSERT_TRUE(server_.wait_for_watch(1));
  program.interrupt();
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_NE(outcome.err.find("merope-cli watch job-1 -o "), std::string::npos) << outcome.err;
  EXPECT_TRUE(server_.cancelled().empty());
  EXPECT_EQ(n_outputs(), 0U);
}

TEST_F(CliTest, SecondInterruptCancelsTheJob) {
  server_.script_watch({{.events = {fragment_event(1, 1, "half")}, .hang = true}});
  Program program(folder_ / "captured", submit({"-o", (output() / "clip.mp4").string()}));
  ASSERT_TRUE(server_.wait_for_watch(1));
  program.interrupt();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (program.err_so_far().find("Ctrl-C again") == std::string::npos && std::chrono::steady_clock::now() < deadline) {
    ::usleep(1000);
  }
  program.interrupt();
  EXPECT_EQ(program.wait().exit_code, 2);
  EXPECT_EQ(server_.cancelled(), std::vector<std::string>{"job-1"});
}

TEST_F(CliTest, CancelOnInterruptNeedsOnlyOne) {
  server_.script_watch({{.events = {}, .hang = true}});
  Program program(folder_ / "captured", submit({"--cancel-on-interrupt", "-o", (output() / "clip.mp4").string()}));
  ASSERT_TRUE(server_.wait_for_watch(1));
  program.interrupt();
  EXPECT_EQ(program.wait().exit_code, 2);
  EXPECT_EQ(server_.cancelled(), std::vector<std::string>{"job-1"});
}

}  // namespace
}  // namespace merope::client
