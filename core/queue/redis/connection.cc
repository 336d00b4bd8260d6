#include "core/queue/redis/connection.h"

#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <vector>

namespace merope::queue::redis {
namespace {

timeval to_timeval(std::chrono::milliseconds duration) {
  return {static_cast<time_t>(duration.count() / 1000), static_cast<suseconds_t>(duration.count() % 1000 * 1000)};
}

std::string_view text_of(const redisReply& reply) {
  return {reply.str, reply.len};
}

// What hiredis says about a broken context; errno is only meaningful for its kind REDIS_ERR_IO.
std::string reason_of(const redisContext& context, int error_number) {
  if (context.err == REDIS_ERR_IO && (error_number == EAGAIN || error_number == EWOULDBLOCK)) {
    return "no answer in time";
  }
  return context.errstr;
}

}  // namespace

bool has_error_code(const redisReply& reply, std::string_view code) {
  return is_error(reply) && text_of(reply).substr(0, code.size()) == code;
}

Error Connection::lost(const std::string& why) {
  context_.reset();
  return unavailable("Redis at " + address_.text() + " can not be reached: " + why);
}

Error Connection::error_of(const redisReply& reply) {
  const std::string message = "Redis at " + address_.text() + " refused: " + std::string(text_of(reply));
  constexpr std::array<std::string_view, 7> kPassing{
      "LOADING", "BUSY", "MISCONF", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS"};
  if (has_error_code(reply, "READONLY")) {
    context_.reset();
    return unavailable(message);
  }
  if (has_error_code(reply, "OOM")) {
    return {ErrorCode::kResourceExhausted, message};
  }
  if (std::any_of(kPassing.begin(), kPassing.end(), [&](std::string_view code) { return has_error_code(reply, code); })) {
    return unavailable(message);
  }
  if (has_error_code(reply, "NOAUTH") || has_error_code(reply, "WRONGPASS") || has_error_code(reply, "NOPERM")) {
    return {ErrorCode::kFailedPrecondition, message};
  }
  return internal_error(message);
}

Status Connection::dial() {
  const timeval connect = to_timeval(timeouts_.connect);
  context_.reset(address_.host.empty() ? redisConnectUnixWithTimeout(address_.path.c_str(), connect)
                                       : redisConnectWithTimeout(address_.host.c_str(), address_.port, connect));
  if (context_ == nullptr) {
    return lost("out of memory");
  }
  if (context_->err != 0) {
    return lost(context_->errstr);
  }
  redisSetTimeout(context_.get(), to_timeval(timeouts_.command));
  if (!address_.host.empty()) {
    redisEnableKeepAlive(context_.get());
  }
  if (!address_.password.empty()) {
    const std::array<std::string_view, 2> arguments{"AUTH", address_.password};
    MEROPE_ASSIGN_OR_RETURN(const ReplyPtr reply, exchange(arguments));
    if (is_error(*reply)) {
      Error error = error_of(*reply);
      context_.reset();
      return error;
    }
  }
  return {};
}

Result<ReplyPtr> Connection::exchange(std::span<const std::string_view> arguments) {
  MEROPE_RETURN_IF_ERROR(send(arguments));
  void* reply = nullptr;
  errno = 0;
  if (redisGetReply(context_.get(), &reply) != REDIS_OK) {
    return lost(reason_of(*context_, errno));
  }
  return ReplyPtr(static_cast<redisReply*>(reply));
}

Result<ReplyPtr> Connection::command(std::span<const std::string_view> arguments) {
  if (context_ != nullptr) {
    // Readable before anything was asked: the peer has closed it.
    pollfd idle{context_->fd, POLLIN, 0};
    if (poll(&idle, 1, 0) == 0) {
      const auto begin = std::chrono::steady_clock::now();
      Result<ReplyPtr> reply = exchange(arguments);
      if (reply || std::chrono::steady_clock::now() - begin >= timeouts_.command) {
        return reply;
      }
    }
    context_.reset();
  }
  MEROPE_RETURN_IF_ERROR(dial());
  return exchange(arguments);
}

Status Connection::send(std::span<const std::string_view> arguments) {
  if (context_ == nullptr) {
    MEROPE_RETURN_IF_ERROR(dial());
  }
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string_view argument : arguments) {
    texts.push_back(argument.data() == nullptr ? "" : argument.data());
    lengths.push_back(argument.size());
  }
  if (redisAppendCommandArgv(context_.get(), static_cast<int>(texts.size()), texts.data(), lengths.data()) != REDIS_OK) {
    return lost(context_->errstr);
  }
  int done = 0;
  while (done == 0) {
    errno = 0;
    if (redisBufferWrite(context_.get(), &done) != REDIS_OK) {
      return lost(reason_of(*context_, errno));
    }
  }
  return {};
}

Result<ReplyPtr> Connection::next(std::chrono::milliseconds timeout, const Wakeup& interrupt) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    if (context_ == nullptr) {
      return lost("the connection is closed");
    }
    void* reply = nullptr;
    if (redisGetReplyFromReader(context_.get(), &reply) != REDIS_OK) {
      return lost(context_->errstr);
    }
    if (reply != nullptr) {
      return ReplyPtr(static_cast<redisReply*>(reply));
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    std::array<pollfd, 2> waiting{{{context_->fd, POLLIN, 0}, {interrupt.fd(), POLLIN, 0}}};
    const int ready = poll(waiting.data(), waiting.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno != EINTR) {
      return lost(std::generic_category().message(errno));
    }
    if (ready == 0 || (ready > 0 && waiting[1].revents != 0)) {
      return ReplyPtr();
    }
    if (ready > 0) {
      errno = 0;
      if (redisBufferRead(context_.get()) != REDIS_OK) {
        return lost(reason_of(*context_, errno));
      }
    }
  }
}

}  // namespace merope::queue::redis
