// Times of single events as a benchmark's result: the mean, and percentiles as counters.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace merope::bench {

using Clock = std::chrono::steady_clock;

// Hands the time of each iteration to a benchmark with UseManualTime and reports p50 and p99 in microseconds at the end.
class Latencies {
 public:
  explicit Latencies(benchmark::State& state) : state_(state) {}
  ~Latencies() {
    if (!seconds_.empty()) {
      state_.counters["p50_us"] = percentile_us(0.50);
      state_.counters["p99_us"] = percentile_us(0.99);
    }
  }
  Latencies(const Latencies&) = delete;
  Latencies& operator=(const Latencies&) = delete;

  void add(Clock::time_point begin, Clock::time_point end) {
    seconds_.push_back(std::chrono::duration<double>(end - begin).count());
    state_.SetIterationTime(seconds_.back());
  }

 private:
  double percentile_us(double fraction) {
    const auto at = static_cast<std::ptrdiff_t>(fraction * static_cast<double>(seconds_.size() - 1));
    std::nth_element(seconds_.begin(), seconds_.begin() + at, seconds_.end());
    return seconds_[static_cast<std::size_t>(at)] * 1e6;
  }

  benchmark::State& state_;
  std::vector<double> seconds_;
};

}  // namespace merope::bench
