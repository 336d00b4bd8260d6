#include "tests/support/redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "core/base/check.h"

namespace merope::test {
namespace {

constexpr std::chrono::seconds kStartDeadline{20};

int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  MEROPE_CHECK(fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0, "no free port");
  MEROPE_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0, "no free port");
  close(fd);
  return ntohs(address.sin_port);
}

std::string render(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_INTEGER: return std::to_string(reply.integer);
    case REDIS_REPLY_NIL: return "";
    case REDIS_REPLY_ARRAY: {
      std::string lines;
      for (std::size_t i = 0; i < reply.elements; ++i) {
        lines += render(*reply.element[i]) + "\n";
      }
      return lines;
    }
    default: return std::string(reply.str, reply.len);
  }
}

// The answer, or nothing when it can not be reached.
bool ask(const std::string& socket_path, const std::vector<std::string>& words, std::string& answer) {
  const std::unique_ptr<redisContext, decltype(&redisFree)> context(redisConnectUnix(socket_path.c_str()), &redisFree);
  if (context == nullptr || context->err != 0) {
    return false;
  }
  redisSetTimeout(context.get(), timeval{10, 0});
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply(
      static_cast<redisReply*>(
          redisCommandArgv(context.get(), static_cast<int>(texts.size()), texts.data(), lengths.data())),
      &freeReplyObject);
  if (reply == nullptr) {
    return false;
  }
  answer = render(*reply);
  return true;
}

}  // namespace

RedisServer::RedisServer() : RedisServer(Options()) {}

RedisServer::RedisServer(Options options) : options_(std::move(options)) {
  // The clients write into sockets whose other end dies here.
  signal(SIGPIPE, SIG_IGN);
  std::string pattern = (std::filesystem::temp_directory_path() / "merope-redis-XXXXXX").string();
  MEROPE_CHECK(mkdtemp(pattern.data()) != nullptr, "no temporary folder");
  folder_ = pattern;
  start();
}

RedisServer::~RedisServer() {
  if (pid_ > 0) {
    kill();
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string RedisServer::tcp_url() const {
  MEROPE_CHECK(options_.tcp, "this server has no TCP port");
  return "redis://127.0.0.1:" + std::to_string(port_);
}

void RedisServer::start() {
  MEROPE_CHECK(pid_ < 0, "start() of a server that runs");
  // Somebody else may take a free port before redis-server does.
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    if (options_.tcp && port_ == 0) {
      port_ = free_port();
    }
    if (launch()) {
      return;
    }
    port_ = 0;
  }
  std::ifstream log(folder_ / "redis.log");
  std::stringstream text;
  text << log.rdbuf();
  check_failed(__FILE__, __LINE__, "redis-server starts", "redis-server did not start: " + text.str());
}

bool RedisServer::launch() {
  std::vector<std::string> words{"redis-server",
                                 "--port",
                                 std::to_string(port_),
                                 "--bind",
                                 "127.0.0.1",
                                 "--unixsocket",
                                 socket_path(),
                                 "--dir",
                                 folder_.string(),
                                 "--logfile",
                                 (folder_ / "redis.log").string(),
                                 "--save",
                                 "",
                                 "--appendonly",
                                 "yes",
                                 "--appendfsync",
                                 "always",
                                 "--maxmemory-policy",
                                 "noeviction"};
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  std::filesystem::remove(socket_path());
  pid_ = fork();
  MEROPE_CHECK(pid_ >= 0, "fork");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  const auto deadline = std::chrono::steady_clock::now() + kStartDeadline;
  std::string answer;
  while (std::chrono::steady_clock::now() < deadline) {
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return false;
    }
    if (ask(socket_path(), {"PING"}, answer) && answer.find("LOADING") == std::string::npos) {
      return true;
    }
    poll(nullptr, 0, 2);  // there is nothing to wait on before the socket exists
  }
  kill();
  return false;
}

void RedisServer::kill() {
  MEROPE_CHECK(pid_ > 0, "kill() of a server that does not run");
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void RedisServer::freeze() {
  MEROPE_CHECK(pid_ > 0, "freeze() of a server that does not run");
  ::kill(pid_, SIGSTOP);
  waitpid(pid_, nullptr, WUNTRACED);
}

void RedisServer::thaw() {
  MEROPE_CHECK(pid_ > 0, "thaw() of a server that does not run");
  ::kill(pid_, SIGCONT);
}

std::string RedisServer::command(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  std::string answer;
  MEROPE_CHECK(ask(socket_path(), words, answer), "redis-server does not answer");
  return answer;
}

}  // namespace merope::test
