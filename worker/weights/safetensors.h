// Reads one safetensors file: 8 bytes of header length (little-endian), a JSON header, and the tensors' bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "worker/weights/dtype.h"
#include "worker/weights/mapped_file.h"

namespace merope::worker {

// A tensor as the header describes it. Row-major, without strides; begin and end are bytes from the start of the buffer
// behind the header and were checked against the file's size, the dtype and the shape.
struct StoredTensor {
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;  // empty: a scalar
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// A checked, memory-mapped file. Immutable; any thread; copies share the mapping.
class SafetensorsFile {
 public:
  // kNotFound when there is no file; kDataLoss, with the file and the tensor named, when anything in the header is wrong:
  // the tensors must cover the buffer exactly, in any order, without gap or overlap. The buffer itself is not read.
  static Result<SafetensorsFile> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // The bytes of a tensor of this file: not aligned to the element size in files of some writers. Valid as long as
  // mapping().
  std::span<const std::byte> bytes(const StoredTensor& tensor) const;
  const std::shared_ptr<const MappedFile>& mapping() const { return mapping_; }

 private:
  SafetensorsFile() = default;

  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> mapping_;
  std::size_t buffer_at_ = 0;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace merope::worker
