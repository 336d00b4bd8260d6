// The weights of one component: a single safetensors file, or shards with an index.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "worker/weights/safetensors.h"

namespace merope::worker {

// Immutable; any thread.
class ComponentFiles {
 public:
  struct Place {
    const SafetensorsFile* file = nullptr;
    const StoredTensor* tensor = nullptr;
  };

  // `place` is a folder or one *.safetensors. In a folder: `<stem>.safetensors.index.json` and the shards it names when
  // there is one index, otherwise the folder's one `*.safetensors`. Refused, with the file or tensor named: no weights at
  // all, several candidates, an index that names files outside the folder, a missing or broken shard, a tensor that is
  // listed and absent, a tensor that two shards hold.
  static Result<ComponentFiles> open(const std::filesystem::path& place);

  const std::filesystem::path& place() const { return place_; }
  const std::vector<std::unique_ptr<const SafetensorsFile>>& files() const { return files_; }
  // Every tensor of every file, listed in the index or not: what a model does not ask for must be reported.
  const std::map<std::string, Place>& tensors() const { return tensors_; }

 private:
  ComponentFiles() = default;
  Status add_file(const std::filesystem::path& path);
  Status add_shards(const std::filesystem::path& index);

  std::filesystem::path place_;
  std::vector<std::unique_ptr<const SafetensorsFile>> files_;
  std::map<std::string, Place> tensors_;
};

}  // namespace merope::worker
