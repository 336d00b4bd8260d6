// Where a CPU kernel gets its threads from. It never starts any itself.
#pragma once

#include <functional>

namespace merope::kernels {

// Used by one thread at a time; a body must not call run() again.
class ParallelFor {
 public:
  virtual ~ParallelFor() = default;

  virtual int n_threads() const = 0;
  // Calls body(item, thread) once for every item in [0, n_items), in any order, from up to n_threads() threads at once, each
  // with a `thread` of its own in [0, n_threads()). Returns when all are done. The body must not throw.
  virtual void run(int n_items, const std::function<void(int item, int thread)>& body) = 0;
};

// The calling thread does it all.
class SerialFor final : public ParallelFor {
 public:
  int n_threads() const override { return 1; }
  void run(int n_items, const std::function<void(int item, int thread)>& body) override {
    for (int item = 0; item < n_items; ++item) {
      body(item, 0);
    }
  }
};

}  // namespace merope::kernels
