#include "core/base/metrics.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "core/base/admin_http.h"

namespace merope {
namespace {

std::string http_get(int port, const std::string& path) {
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
    EXPECT_EQ(write(connection, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    char buffer[4096];
    for (ssize_t got = 0; (got = read(connection, buffer, sizeof buffer)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(got));
    }
  }
  close(connection);
  return answer;
}

TEST(Metrics, SameNameAndLabelsGiveTheSameHandle) {
  MetricsRegistry registry;
  registry.counter("merope_test_events_total", "events", {{"code", "OK"}}).increment();
  registry.counter("merope_test_events_total", "events", {{"code", "OK"}}).increment(2);
  EXPECT_EQ(registry.counter("merope_test_events_total", "events", {{"code", "OK"}}).value(), 3);
  EXPECT_NE(registry.render().find("merope_test_events_total{code=\"OK\"} 3"), std::string::npos);
  EXPECT_NE(registry.render().find("process_resident_memory_bytes"), std::string::npos);
}

TEST(AdminHttp, ServesMetricsAndProbes) {
  MetricsRegistry registry;
  registry.gauge("merope_test_level", "level").set(7);
  std::string not_ready = "no model yet";
  auto admin = AdminHttp::start({}, registry, {[] { return std::string(); }, [&] { return not_ready; }});
  ASSERT_TRUE(admin);
  const int port = (*admin)->port();
  EXPECT_NE(http_get(port, "/metrics").find("merope_test_level 7"), std::string::npos);
  EXPECT_NE(http_get(port, "/healthz").find("200 OK"), std::string::npos);
  EXPECT_NE(http_get(port, "/readyz").find("no model yet"), std::string::npos);
  EXPECT_NE(http_get(port, "/readyz").find("503"), std::string::npos);
}

TEST(AdminHttp, NamesThePortThatIsTaken) {
  MetricsRegistry registry;
  const AdminHttp::Probes probes{[] { return std::string(); }, [] { return std::string(); }};
  auto first = AdminHttp::start({}, registry, probes);
  ASSERT_TRUE(first);
  const int port = (*first)->port();
  auto second = AdminHttp::start({"127.0.0.1", port}, registry, probes);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(std::to_string(port)), std::string::npos);
}

}  // namespace
}  // namespace merope
