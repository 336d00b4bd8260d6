// Where the tensors of a model come from, and the reader that checks them while a model is built.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace merope::worker {

// Named tensors of one component (transformer, vae, text encoder, camera branch), as stored. Immutable; any thread.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual std::vector<std::string> names() const = 0;
  // On the CPU, in the stored dtype; may be a read-only view of a mapped file. Throws std::runtime_error, with a sentence
  // whose subject is the tensor ("has dtype ..."), when it is there in a form that no model can use.
  virtual std::optional<at::Tensor> find(const std::string& name) const = 0;
  // What the stored numbers are to be multiplied with, where the format keeps them scaled: one factor, or one per row. fp32.
  virtual std::optional<at::Tensor> scale(const std::string& /*name*/) const { return std::nullopt; }
  // The tensor was copied and find()'s view of it is gone: its pages may leave the memory.
  virtual void release(const std::string& /*name*/) const {}
  // For messages: the file that holds `name`, or the folder when it is in none.
  virtual std::string origin(const std::string& name) const = 0;
};

// Hands out tensors by name and remembers everything that is wrong, so that one message can say it all. A model's
// constructor asks for each of its tensors and then calls finish(); a model built from a reader with problems must not be
// used. On the device at::kMeta everything is read and checked and nothing is kept.
class WeightReader {
 public:
  WeightReader(const WeightSource& source, at::Device device, at::ScalarType dtype)
      : source_(source), device_(device), dtype_(dtype) {}

  // The tensor converted to the reader's dtype (or `dtype`) and device. When it is missing, mis-shaped or holds NaN or
  // infinity that is remembered, and zeros of the right shape come back.
  at::Tensor tensor(const std::string& name, at::IntArrayRef shape);
  at::Tensor tensor(const std::string& name, at::IntArrayRef shape, at::ScalarType dtype);

  at::Device device() const { return device_; }
  at::ScalarType dtype() const { return dtype_; }

  // Whether the source holds such a tensor: for the few that have two possible names.
  bool has(const std::string& name) const;

  // A tensor that may be in the file and is not wanted.
  void ignore(const std::string& name) { asked_.insert(name); }

  // kDataLoss that lists all missing, unexpected, mis-shaped and non-finite tensors (at most 20 of them) with their files.
  Status finish() const;

 private:
  const WeightSource& source_;
  at::Device device_;
  at::ScalarType dtype_;
  std::set<std::string> asked_;
  std::vector<std::string> problems_;
};

}  // namespace merope::worker
