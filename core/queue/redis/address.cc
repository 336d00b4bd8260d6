#include "core/queue/redis/address.h"

#include <charconv>

namespace merope::queue::redis {

std::string Address::text() const {
  if (host.empty()) {
    return "unix://" + path;
  }
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return "redis://" + (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Address> parse_address(std::string_view url) {
  constexpr std::string_view kTcp = "redis://";
  constexpr std::string_view kUnix = "unix://";
  const auto wrong = [](const std::string& why) {
    return invalid_argument("Redis URL: " + why + "; expected redis://[:password@]host[:port] or unix://[:password@]/path");
  };
  const bool is_tcp = url.substr(0, kTcp.size()) == kTcp;
  if (!is_tcp && url.substr(0, kUnix.size()) != kUnix) {
    return wrong("it starts with neither redis:// nor unix://");
  }
  std::string_view rest = url.substr(is_tcp ? kTcp.size() : kUnix.size());
  Address address;
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    const std::string_view user = rest.substr(0, at);
    if (user.empty() || user.front() != ':') {
      return wrong("only a password (:password@) may stand before the @, no user name");
    }
    address.password = user.substr(1);
    rest.remove_prefix(at + 1);
  }
  if (!is_tcp) {
    if (rest.empty() || rest.front() != '/') {
      return wrong("the path of the socket is not absolute");
    }
    address.path = rest;
    return address;
  }
  if (!rest.empty() && rest.back() == '/') {
    rest.remove_suffix(1);
  }
  std::string_view port;
  if (!rest.empty() && rest.front() == '[') {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) {
      return wrong("an IPv6 address without its closing bracket");
    }
    address.host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
  } else {
    const std::size_t colon = rest.find(':');
    address.host = rest.substr(0, colon);
    port = colon == std::string_view::npos ? std::string_view() : rest.substr(colon);
  }
  if (address.host.empty() || address.host.find('/') != std::string::npos) {
    return wrong("no host, or something after the port (database numbers are not supported)");
  }
  if (!port.empty()) {
    const char* end = port.data() + port.size();
    const auto parsed = std::from_chars(port.data() + 1, end, address.port);
    if (port.front() != ':' || parsed.ec != std::errc() || parsed.ptr != end || address.port < 1 || address.port > 65535) {
      return wrong("the port '" + std::string(port) + "' is not a number from 1 to 65535");
    }
  }
  return address;
}

}  // namespace merope::queue::redis
