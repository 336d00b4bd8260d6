#include "server/standalone/ready_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

namespace merope::standalone {
namespace {

class Socket {
 public:
  explicit Socket(int family) : fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  ~Socket() { close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// The first bytes of the answer; empty when there is none.
std::string ask(const Socket& socket, std::string_view question) {
  if (send(socket.fd(), question.data(), question.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(question.size())) {
    return "";
  }
  char answer[64];
  const ssize_t size = recv(socket.fd(), answer, sizeof answer, 0);
  return size > 0 ? std::string(answer, static_cast<std::size_t>(size)) : "";
}

std::optional<sockaddr_in> ipv4_address(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const std::string number = host == "localhost" ? "127.0.0.1" : host;
  if (inet_pton(AF_INET, number.c_str(), &address.sin_addr) != 1) {
    return std::nullopt;
  }
  return address;
}

}  // namespace

bool redis_answers(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) {
    return false;
  }
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  const Socket socket(AF_UNIX);
  return connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         ask(socket, "PING\r\n").starts_with("+PONG");
}

bool http_is_ready(const std::string& host, int port) {
  const auto address = ipv4_address(host, port);
  const Socket socket(AF_INET);
  return address && connect(socket.fd(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0 &&
         ask(socket, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").starts_with("HTTP/1.1 200");
}

Result<int> free_port(const std::string& host) {
  auto address = ipv4_address(host, 0);
  if (!address) {
    return invalid_argument("\"" + host + "\" is not an IPv4 address");
  }
  const Socket socket(AF_INET);
  socklen_t size = sizeof *address;
  if (bind(socket.fd(), reinterpret_cast<const sockaddr*>(&*address), size) != 0 ||
      getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&*address), &size) != 0) {
    return unavailable("no free port on " + host + ": " + std::strerror(errno));
  }
  return static_cast<int>(ntohs(address->sin_port));
}

}  // namespace merope::standalone
