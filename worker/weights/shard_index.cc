#include "worker/weights/shard_index.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <system_error>

#include "core/base/log.h"
#include "worker/weights/internal/json_text.h"

namespace merope::worker {
namespace {

constexpr std::string_view kIndexEnding = ".safetensors.index.json";
constexpr std::string_view kWeightsEnding = ".safetensors";

std::string listing(const std::vector<std::filesystem::path>& paths) {
  std::string text;
  for (const std::filesystem::path& path : paths) {
    text += (text.empty() ? "" : ", ") + path.filename().string();
  }
  return text;
}

// The index must not lead out of its folder: it names files next to it.
bool is_plain_file_name(const std::string& name) {
  return name.ends_with(kWeightsEnding) && name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos &&
         name.find("..") == std::string::npos;
}

Result<std::map<std::string, std::string>> read_weight_map(const std::filesystem::path& index, std::uint64_t& total_size) {
  MEROPE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::open(index));
  const std::span<const std::byte> bytes = file->bytes();
  const std::string origin = index.string();
  MEROPE_ASSIGN_OR_RETURN(
      const nlohmann::json json,
      parse_json_object(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), origin));
  if (!json.contains("weight_map") || !json["weight_map"].is_object()) {
    return Error{ErrorCode::kDataLoss, origin + ": has no object weight_map"};
  }
  if (json.contains("metadata") && json["metadata"].is_object()) {
    const nlohmann::json size = json["metadata"].value("total_size", nlohmann::json());
    total_size = size.is_number_unsigned() ? size.get<std::uint64_t>() : 0;
  }
  std::map<std::string, std::string> weight_map;
  for (const auto& [tensor, shard] : json["weight_map"].items()) {
    if (!shard.is_string() || !is_plain_file_name(shard.get_ref<const std::string&>())) {
      return Error{ErrorCode::kDataLoss,
                   origin + ": weight_map sends " + tensor + " to " + shard.dump() +
                       ", which is not the name of a .safetensors file in the same folder"};
    }
    weight_map.emplace(tensor, shard.get<std::string>());
  }
  return weight_map;
}

}  // namespace

Result<ComponentFiles> ComponentFiles::open(const std::filesystem::path& place) {
  ComponentFiles component;
  component.place_ = place;
  if (std::filesystem::is_regular_file(place)) {
    MEROPE_RETURN_IF_ERROR(component.add_file(place));
    return component;
  }
  std::vector<std::filesystem::path> indexes;
  std::vector<std::filesystem::path> singles;
  std::error_code failure;
  for (std::filesystem::directory_iterator it(place, failure), end; !failure && it != end; it.increment(failure)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(kIndexEnding)) {
      indexes.push_back(it->path());
    } else if (name.ends_with(kWeightsEnding)) {
      singles.push_back(it->path());
    }
  }
  if (failure) {
    return Error{ErrorCode::kNotFound, place.string() + ": " + failure.message()};
  }
  std::ranges::sort(indexes);
  std::ranges::sort(singles);
  if (indexes.size() == 1) {
    MEROPE_RETURN_IF_ERROR(component.add_shards(indexes.front()));
  } else if (indexes.empty() && singles.size() == 1) {
    MEROPE_RETURN_IF_ERROR(component.add_file(singles.front()));
  } else if (indexes.empty() && singles.empty()) {
    return Error{ErrorCode::kNotFound, place.string() + ": holds no *.safetensors file"};
  } else {
    return Error{ErrorCode::kFailedPrecondition,
                 place.string() + ": which weights are meant? Found " + listing(indexes.empty() ? singles : indexes) +
                     (indexes.empty() ? ", and no index that joins them" : "")};
  }
  return component;
}

Status ComponentFiles::add_file(const std::filesystem::path& path) {
  MEROPE_ASSIGN_OR_RETURN(SafetensorsFile opened, SafetensorsFile::open(path));
  files_.push_back(std::make_unique<const SafetensorsFile>(std::move(opened)));
  const SafetensorsFile& file = *files_.back();
  for (const auto& [name, tensor] : file.tensors()) {
    const auto [place, is_new] = tensors_.try_emplace(name, Place{&file, &tensor});
    if (!is_new) {
      return Error{ErrorCode::kDataLoss,
                   name + " is both in " + place->second.file->path().string() + " and in " + path.string()};
    }
  }
  return {};
}

Status ComponentFiles::add_shards(const std::filesystem::path& index) {
  std::uint64_t total_size = 0;
  MEROPE_ASSIGN_OR_RETURN(const auto weight_map, read_weight_map(index, total_size));
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : weight_map) {
    shards.insert(shard);
  }
  for (const std::string& shard : shards) {
    if (!std::filesystem::exists(place_ / shard)) {
      return Error{ErrorCode::kNotFound, index.string() + ": the shard " + shard + " is missing"};
    }
    MEROPE_RETURN_IF_ERROR(add_file(place_ / shard));
  }
  for (const auto& [name, shard] : weight_map) {
    const auto place = tensors_.find(name);
    if (place == tensors_.end() || place->second.file->path() != place_ / shard) {
      return Error{ErrorCode::kDataLoss, index.string() + ": lists " + name + " in " + shard + ", which does not hold it"};
    }
  }
  std::uint64_t held = 0;
  for (const auto& [name, place] : tensors_) {
    held += place.tensor->end - place.tensor->begin;
  }
  if (total_size != 0 && total_size != held) {
    log::warn("index and shards disagree about the size",
              {{"index", index.string()}, {"total_size", total_size}, {"held_bytes", held}});
  }
  return {};
}

}  // namespace merope::worker
