// Where a Redis listens: redis://[:password@]host[:port] or unix://[:password@]/path/of/socket.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace merope::queue::redis {

struct Address {
  std::string host;  // empty: a Unix socket
  int port = 6379;
  std::string path;
  std::string password;

  // The URL without its password, for messages.
  std::string text() const;
};

// Errors: kInvalidArgument, with what is wrong about the URL but never its password.
Result<Address> parse_address(std::string_view url);

}  // namespace merope::queue::redis
