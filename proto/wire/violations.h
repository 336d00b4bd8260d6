// Collects what is wrong with a request, so that a client learns of all of it in one answer.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace merope::wire {

// Keeps the first kMax violations; the answer travels in gRPC trailers, which are small.
class Violations {
 public:
  static constexpr std::size_t kMax = 32;

  void add(std::string field, std::string description) {
    if (list_.size() < kMax) {
      list_.push_back({std::move(field), std::move(description)});
    }
  }
  // Adds violations of a part whose field paths are relative to `prefix` ("trajectory.").
  void add_all(const std::string& prefix, std::vector<FieldViolation> part) {
    for (FieldViolation& violation : part) {
      add(prefix + violation.field, std::move(violation.description));
    }
  }

  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }
  bool full() const { return list_.size() >= kMax; }
  const std::vector<FieldViolation>& list() const { return list_; }
  std::vector<FieldViolation> take() { return std::exchange(list_, {}); }

 private:
  std::vector<FieldViolation> list_;
};

}  // namespace merope::wire
