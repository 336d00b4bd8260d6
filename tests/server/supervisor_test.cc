// The start, stop and restart of programs, with shell scripts as programs. Each test runs a supervisor in a forked process,
// so that signals and children are those of a merope-standalone, not of the test.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "core/base/exit_codes.h"
#include "server/standalone/state_folder.h"
#include "server/standalone/supervisor.h"

namespace merope::standalone {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() {
    std::string name = fs::temp_directory_path() / "merope-supervisor-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~SupervisorTest() override {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    fs::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return folder_ / name; }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  bool has(const std::string& name, const std::string& text) const { return content(name).find(text) != std::string::npos; }

  // A program that says when it starts, and again when it is asked to stop.
  ChildSpec polite(const std::string& name) const {
    const std::string log = path("log");
    return scripted(name,
                    "trap 'echo stop " + name + " >> " + log + "; exit 0' TERM; echo $$ > " + path(name + ".pid") +
                        "; echo start " + name + " >> " + log + "; while :; do sleep 0.02; done");
  }
  ChildSpec scripted(const std::string& name, const std::string& script) const {
    return {name,
            [script] {
              return std::vector<std::string>{"/bin/sh", "-c", script};
            },
            [log = path("log"), name] {
              std::ifstream file(log);
              std::stringstream text;
              text << file.rdbuf();
              return text.str().find("start " + name) != std::string::npos;
            },
            ""};
  }

  void launch(const std::vector<ChildSpec>& specs, const SupervisorTiming& timing = {}) {
    pid_ = fork();
    if (pid_ == 0) {
      Supervisor supervisor(specs, timing);
      _exit(supervisor.run([&]() -> Status {
        std::ofstream(path("ready")) << "yes";
        return {};
      }));
    }
  }
  int exit_code() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  template <typename Condition>
  ::testing::AssertionResult eventually(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) {
        return ::testing::AssertionFailure() << "it did not happen within 20 s";
      }
      std::this_thread::sleep_for(milliseconds(5));
    }
    return ::testing::AssertionSuccess();
  }

  fs::path folder_;
  pid_t pid_ = -1;
};

TEST_F(SupervisorTest, StartsInOrderAndStopsInTheOppositeOne) {
  launch({polite("a"), polite("b"), polite("c")});
  ASSERT_TRUE(eventually([&] { return has("ready", "yes"); }));
  EXPECT_EQ(content("log"), "start a\nstart b\nstart c\n");
  kill(pid_, SIGINT);
  EXPECT_EQ(exit_code(), kExitOk);
  EXPECT_EQ(content("log"), "start a\nstart b\nstart c\nstop c\nstop b\nstop a\n");
}

TEST_F(SupervisorTest, EndsWithTheCodeOfTheProgramThatDoesNotStart) {
  launch({polite("a"), scripted("b", "exit 65")});
  EXPECT_EQ(exit_code(), kExitData);
  EXPECT_EQ(content("log"), "start a\nstop a\n");
  EXPECT_FALSE(has("ready", "yes"));
}

TEST_F(SupervisorTest, DoesNotPassOnACodeThatIsNotOurs) {
  launch({scripted("a", "exit 1")});
  EXPECT_EQ(exit_code(), kExitSoftware);
}

TEST_F(SupervisorTest, GivesUpOnAProgramThatNeverBecomesReady) {
  launch({scripted("a", "while :; do sleep 0.02; done")},
         {.start_limit = milliseconds(100), .stop_limit = milliseconds(5000)});
  EXPECT_EQ(exit_code(), kExitUnavailable);
}

TEST_F(SupervisorTest, MissingProgramIsMissingInput) {
  ChildSpec missing = polite("a");
  missing.command = [] { return std::vector<std::string>{"/nonexistent/program"}; };
  launch({missing});
  EXPECT_EQ(exit_code(), kExitNoInput);
}

TEST_F(SupervisorTest, StartsAProgramAgainThatEndedLater) {
  launch({polite("a"), polite("b")}, {.first_backoff = milliseconds(10)});
  ASSERT_TRUE(eventually([&] { return has("ready", "yes") && has("b.pid", "\n"); }));
  const std::string first = content("b.pid");
  kill(std::stoi(first), SIGKILL);
  ASSERT_TRUE(eventually([&] { return content("log") == "start a\nstart b\nstart b\n" && content("b.pid") != first; }));
  kill(pid_, SIGTERM);
  EXPECT_EQ(exit_code(), kExitOk);
  EXPECT_EQ(content("log"), "start a\nstart b\nstart b\nstop b\nstop a\n");
}

TEST_F(SupervisorTest, KillsAProgramThatDoesNotStop) {
  launch({scripted("a", "trap '' TERM; echo start a >> " + path("log") + "; while :; do sleep 0.02; done")},
         {.stop_limit = milliseconds(100)});
  ASSERT_TRUE(eventually([&] { return has("ready", "yes"); }));
  kill(pid_, SIGTERM);
  EXPECT_EQ(exit_code(), kExitOk);
}

TEST_F(SupervisorTest, DoesNotLeaveProgramsBehindWhenItIsKilled) {
  launch({polite("a")});
  ASSERT_TRUE(eventually([&] { return has("ready", "yes") && has("a.pid", "\n"); }));
  const int child = std::stoi(content("a.pid"));
  kill(pid_, SIGKILL);
  exit_code();
  // Gone, or a zombie that whoever inherited it has not collected yet.
  EXPECT_TRUE(eventually([&] {
    std::ifstream file("/proc/" + std::to_string(child) + "/stat");
    std::string line;
    std::getline(file, line);
    return line.empty() || line.find(") Z") != std::string::npos;
  }));
}

TEST_F(SupervisorTest, StateFolderTakesOneServiceAtATime) {
  {
    const auto first = StateFolder::open(path("state"));
    ASSERT_TRUE(first);
    EXPECT_EQ(StateFolder::open(path("state")).error().code, ErrorCode::kAlreadyExists);
    ASSERT_TRUE(first->write_redis_config());
    EXPECT_TRUE(has("state/redis.conf", "appendfsync always"));
    EXPECT_TRUE(has("state/redis.conf", "port 0"));
  }
  EXPECT_TRUE(StateFolder::open(path("state")));
  EXPECT_EQ(StateFolder::open(path(std::string(150, 'x'))).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace merope::standalone
