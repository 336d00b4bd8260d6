// Counters, gauges and histograms over one Prometheus registry, without prometheus-cpp in the header.
//
// Names follow merope_<room>_<what>_<unit>; counters end in _total; labels have few values known beforehand, never a job id
// or a path. A component creates its handles once, in a *_metrics.h struct, and keeps them: looking one up by labels costs
// 500 ns, using it 14 ns.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace merope {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// The handles live as long as their registry; any thread may use them.
class Counter {
 public:
  virtual ~Counter() = default;
  virtual void increment(double by = 1) = 0;
  virtual double value() const = 0;
};

class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void set(double value) = 0;
  virtual void increment(double by = 1) = 0;
  virtual void decrement(double by = 1) = 0;
  virtual double value() const = 0;
};

class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void observe(double value) = 0;
  virtual double sum() const = 0;
  virtual double count() const = 0;
};

// Upper bounds in seconds for what takes from a millisecond to an hour.
const std::vector<double>& seconds_buckets();

// Owns every metric of a program. The same name and labels give the same handle. Internally locked.
class MetricsRegistry {
 public:
  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  Counter& counter(const std::string& name, const std::string& help, const MetricLabels& labels = {});
  Gauge& gauge(const std::string& name, const std::string& help, const MetricLabels& labels = {});
  Histogram& histogram(const std::string& name,
                       const std::string& help,
                       const std::vector<double>& buckets,
                       const MetricLabels& labels = {});

  // Everything in the Prometheus text format 0.0.4, with the process's own figures (memory, threads, descriptors, start).
  std::string render() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace merope
