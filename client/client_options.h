// How a client reaches the service and how patient it is.
#pragma once

#include <chrono>
#include <string>

namespace merope::client {

struct ClientOptions {
  // What gRPC resolves: "host:port", "dns:///name:port" (all addresses in turn), "unix:/path".
  std::string address = "127.0.0.1:50051";

  // Limit of one unary call, its retries included. Long enough for 64 MiB of pictures over a slow line.
  std::chrono::milliseconds call_timeout{60'000};
  // How long the first call waits for a server that is not there yet. 0: it fails at once.
  std::chrono::milliseconds wait_for_server{0};

  // A broken watch is resumed after a pause that doubles from the first to the second value (each with up to 20 % of chance,
  // so that a thousand clients do not come back in one moment), and given up when no event arrived for the third.
  std::chrono::milliseconds reattach_first{200};
  std::chrono::milliseconds reattach_most{5'000};
  std::chrono::milliseconds reattach_for{300'000};
};

}  // namespace merope::client
