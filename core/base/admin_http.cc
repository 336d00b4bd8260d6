#include "core/base/admin_http.h"

#include <CivetServer.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

// civetweb asks for stacks of 100 KiB, and can not be told otherwise. glibc takes the thread-local variables of all loaded
// libraries out of a thread's stack and refuses a thread whose stack can not hold them: those of LibTorch's CUDA libraries
// are larger than that, so that no worker for GPUs had an admin port. A program that links this file raises what is too
// small. Only address space is reserved; pages are touched as they are used.
extern "C" int pthread_attr_setstacksize(pthread_attr_t* attributes, std::size_t size) {
  constexpr std::size_t kSmallest = std::size_t{1} << 20U;
  using Function = int (*)(pthread_attr_t*, std::size_t);
  static const auto of_libc = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_attr_setstacksize"));
  return of_libc(attributes, std::max(size, kSmallest));
}

namespace merope {
namespace {

// One path: calls a function that gives a status code and a body.
class Page final : public CivetHandler {
 public:
  using Content = std::function<std::pair<int, std::string>()>;
  Page(const char* content_type, Content content) : content_type_(content_type), content_(std::move(content)) {}

  bool handleGet(CivetServer* /*server*/, mg_connection* connection) override {
    const auto [code, body] = content_();
    mg_printf(connection,
              "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
              code,
              code == 200 ? "OK" : "Service Unavailable",
              content_type_,
              body.size());
    mg_write(connection, body.data(), body.size());
    return true;
  }

 private:
  const char* content_type_;
  Content content_;
};

Page::Content probe_content(std::function<std::string()> probe) {
  return [probe = std::move(probe)] {
    std::string reason = probe();
    return reason.empty() ? std::pair(200, std::string("ok\n")) : std::pair(503, reason + "\n");
  };
}

// Stops the server without the two seconds that civetweb sleeps between two looks at its stop flag: a connection wakes it
// up.
void stop_quickly(std::unique_ptr<CivetServer> server) {
  const int port = server->getListeningPorts().at(0);
  std::atomic<bool> stopped = false;
  std::jthread knock([&] {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    while (!stopped) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      static_cast<void>(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      close(fd);
    }
  });
  server.reset();
  stopped = true;
}

}  // namespace

struct AdminHttp::Impl {
  Impl(const MetricsRegistry& metrics, Probes probes)
      : metrics_page("text/plain; version=0.0.4", [&metrics] { return std::pair(200, metrics.render()); }),
        health_page("text/plain", probe_content(std::move(probes.live))),
        ready_page("text/plain", probe_content(std::move(probes.ready))) {}
  ~Impl() {
    if (server) {
      stop_quickly(std::move(server));
    }
  }

  Page metrics_page;
  Page health_page;
  Page ready_page;
  std::unique_ptr<CivetServer> server;  // stops before the pages that it calls go away
};

Result<std::unique_ptr<AdminHttp>> AdminHttp::start(const AdminConfig& config,
                                                    const MetricsRegistry& metrics,
                                                    Probes probes) {
  auto impl = std::make_unique<Impl>(metrics, std::move(probes));
  const std::string address = config.host + ":" + std::to_string(config.port);
  const std::vector<std::string> options = {
      "listening_ports", address, "num_threads", "2", "enable_directory_listing", "no"};
  try {
    impl->server = std::make_unique<CivetServer>(options);
  } catch (const CivetException& failure) {
    return unavailable("admin port " + address + " can not be opened (is it in use?): " + failure.what());
  }
  impl->server->addHandler("/metrics", impl->metrics_page);
  impl->server->addHandler("/healthz", impl->health_page);
  impl->server->addHandler("/readyz", impl->ready_page);
  return std::unique_ptr<AdminHttp>(new AdminHttp(std::move(impl)));
}

AdminHttp::AdminHttp(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AdminHttp::~AdminHttp() = default;

int AdminHttp::port() const {
  return impl_->server->getListeningPorts().at(0);
}

}  // namespace merope
