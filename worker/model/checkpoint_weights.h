// A component folder of a checkpoint as a WeightSource.
#pragma once

#include <filesystem>
#include <memory>

#include "worker/model/weight_source.h"
#include "worker/weights/shard_index.h"

namespace merope::worker {

// Tensors are views of the mapped files, so that weights kept in their stored dtype are never copied and are read from disk
// when they are first used. A view keeps its file mapped, also when the source is gone. Nobody may write to a view: the
// pages are read-only. Tensors that a writer left unaligned are copied. Immutable; any thread.
class CheckpointWeights final : public WeightSource {
 public:
  // `folder`: transformer/, vae/ or text_encoder/ of a checkpoint. Errors as of ComponentFiles::open.
  static Result<std::unique_ptr<const CheckpointWeights>> open(const std::filesystem::path& folder);

  std::vector<std::string> names() const override;
  std::optional<at::Tensor> find(const std::string& name) const override;
  std::string origin(const std::string& name) const override;

 private:
  explicit CheckpointWeights(ComponentFiles files) : files_(std::move(files)) {}

  ComponentFiles files_;
};

}  // namespace merope::worker
