// A component folder of a checkpoint as a WeightSource.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "worker/model/weight_source.h"
#include "worker/weights/shard_index.h"

namespace merope::worker {

// Tensors are views of the mapped files, so that weights kept in their stored dtype are never copied and are read from disk
// when they are first used. A view keeps its file mapped, also when the source is gone. Nobody may write to a view: the
// pages are read-only. Tensors that a writer left unaligned are copied. Immutable; any thread.
//
// 8-bit weights may come with factors: beside `layer.weight` lies `layer.scale_weight` or `layer.weight_scale`, one number
// or one per row. These, and what else such files keep for kernels that compute in 8 bits, are not among names(). A file
// that is marked as scaled (`scaled_fp8`), or holds one factor, must hold one for every 8-bit matrix but the embedding.
class CheckpointWeights final : public WeightSource {
 public:
  // `place`: transformer/, vae/ or text_encoder/ of a checkpoint, or one file. Errors as of ComponentFiles::open.
  static Result<std::unique_ptr<const CheckpointWeights>> open(const std::filesystem::path& place);

  std::vector<std::string> names() const override;
  std::optional<at::Tensor> find(const std::string& name) const override;
  std::optional<at::Tensor> scale(const std::string& name) const override;
  void release(const std::string& name) const override;
  std::string origin(const std::string& name) const override;

  const ComponentFiles& files() const { return files_; }

 private:
  explicit CheckpointWeights(ComponentFiles files);

  ComponentFiles files_;
  std::map<std::string, std::string> scales_;  // of a weight: the name of its factors
  std::set<std::string> companions_;           // what lies there for 8-bit weights
  bool is_scaled_ = false;
};

}  // namespace merope::worker
