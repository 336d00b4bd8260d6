#include "core/base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

namespace merope {
namespace {

class PrometheusCounter final : public Counter {
 public:
  explicit PrometheusCounter(prometheus::Counter& counter) : counter_(counter) {}
  void increment(double by) override { counter_.Increment(by); }
  double value() const override { return counter_.Value(); }

 private:
  prometheus::Counter& counter_;
};

class PrometheusGauge final : public Gauge {
 public:
  explicit PrometheusGauge(prometheus::Gauge& gauge) : gauge_(gauge) {}
  void set(double value) override { gauge_.Set(value); }
  void increment(double by) override { gauge_.Increment(by); }
  void decrement(double by) override { gauge_.Decrement(by); }
  double value() const override { return gauge_.Value(); }

 private:
  prometheus::Gauge& gauge_;
};

class PrometheusHistogram final : public Histogram {
 public:
  explicit PrometheusHistogram(prometheus::Histogram& histogram) : histogram_(histogram) {}
  void observe(double value) override { histogram_.Observe(value); }
  double sum() const override { return histogram_.Collect().histogram.sample_sum; }
  double count() const override { return static_cast<double>(histogram_.Collect().histogram.sample_count); }

 private:
  prometheus::Histogram& histogram_;
};

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double total_pages = 0;
  double resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double entries_in(const char* folder) {
  std::error_code ignored;
  double count = 0;
  for (auto it = std::filesystem::directory_iterator(folder, ignored); it != std::filesystem::directory_iterator();
       it.increment(ignored)) {
    ++count;
  }
  return count;
}

}  // namespace

struct MetricsRegistry::Impl {
  prometheus::Registry registry;
  std::mutex mutex;
  std::map<const void*, std::unique_ptr<PrometheusCounter>> counters;
  std::map<const void*, std::unique_ptr<PrometheusGauge>> gauges;
  std::map<const void*, std::unique_ptr<PrometheusHistogram>> histograms;

  // The handle for a metric of prometheus-cpp, made at its first use.
  template <typename Handle, typename Metric>
  Handle& handle(std::map<const void*, std::unique_ptr<Handle>>& handles, Metric& metric) {
    const std::lock_guard lock(mutex);
    auto& slot = handles[&metric];
    if (!slot) {
      slot = std::make_unique<Handle>(metric);
    }
    return *slot;
  }
};

const std::vector<double>& seconds_buckets() {
  static const std::vector<double> buckets = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                              1,     2.5,    5,     10,   30,    60,   120, 300,  600, 1800, 3600};
  return buckets;
}

MetricsRegistry::MetricsRegistry() : impl_(std::make_unique<Impl>()) {
  gauge("process_start_time_seconds", "Start of the process, seconds since 1970").set(unix_now());
}

MetricsRegistry::~MetricsRegistry() = default;

Counter& MetricsRegistry::counter(const std::string& name, const std::string& help, const MetricLabels& labels) {
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(impl_->registry);
  return impl_->handle(impl_->counters, family.Add({labels.begin(), labels.end()}));
}

Gauge& MetricsRegistry::gauge(const std::string& name, const std::string& help, const MetricLabels& labels) {
  auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(impl_->registry);
  return impl_->handle(impl_->gauges, family.Add({labels.begin(), labels.end()}));
}

Histogram& MetricsRegistry::histogram(const std::string& name,
                                      const std::string& help,
                                      const std::vector<double>& buckets,
                                      const MetricLabels& labels) {
  auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(impl_->registry);
  return impl_->handle(impl_->histograms,
                       family.Add({labels.begin(), labels.end()}, prometheus::Histogram::BucketBoundaries(buckets)));
}

std::string MetricsRegistry::render() const {
  auto& self = const_cast<MetricsRegistry&>(*this);  // a scrape refreshes the process's own gauges
  self.gauge("process_resident_memory_bytes", "Resident memory").set(resident_bytes());
  self.gauge("process_open_fds", "Open file descriptors").set(entries_in("/proc/self/fd"));
  self.gauge("process_threads", "Threads").set(entries_in("/proc/self/task"));
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace merope
