#include "worker/weights/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>

#include "worker/weights/internal/json_text.h"

namespace merope::worker {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are used where they lie, and the format is little-endian");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own reader

Error broken(const std::string& origin, const std::string& what) {
  return {ErrorCode::kDataLoss, origin + ": " + what};
}

// The sign is looked at before the value is: a negative number must never reach an unsigned type.
std::optional<std::uint64_t> unsigned_number(const nlohmann::json& value) {
  return value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
}

Result<std::vector<std::int64_t>> parse_shape(const nlohmann::json& value, const std::string& origin) {
  if (!value.is_array()) {
    return broken(origin, "shape is not an array");
  }
  std::vector<std::int64_t> shape;
  for (const nlohmann::json& entry : value) {
    const std::optional<std::uint64_t> size = unsigned_number(entry);
    if (!size || *size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return broken(origin, "shape " + value.dump() + " holds something else than sizes");
    }
    shape.push_back(static_cast<std::int64_t>(*size));
  }
  return shape;
}

// Bytes of `shape` elements; nothing when that is not a whole number of bytes or does not fit into 64 bits.
std::optional<std::uint64_t> byte_count(const std::vector<std::int64_t>& shape, Dtype dtype) {
  // Zero sizes are left out of the first product, so that [0, 2^62, 4] is refused too: strides would overflow with it.
  std::int64_t strides = 1;
  bool empty = false;
  for (const std::int64_t size : shape) {
    empty = empty || size == 0;
    if (size != 0 && __builtin_mul_overflow(strides, size, &strides)) {
      return std::nullopt;
    }
  }
  std::uint64_t bits = 0;
  if (__builtin_mul_overflow(empty ? 0U : static_cast<std::uint64_t>(strides), std::uint64_t{bits_of(dtype)}, &bits) ||
      bits % 8 != 0) {
    return std::nullopt;
  }
  return bits / 8;
}

Result<StoredTensor> parse_tensor(const nlohmann::json& value, const std::string& origin) {
  if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets")) {
    return broken(origin, "is not an object with dtype, shape and data_offsets");
  }
  StoredTensor tensor;
  const nlohmann::json& dtype = value["dtype"];
  const std::optional<Dtype> known = dtype.is_string() ? parse_dtype(dtype.get_ref<const std::string&>()) : std::nullopt;
  if (!known) {
    return broken(origin, "unknown dtype " + dtype.dump());
  }
  tensor.dtype = *known;
  MEROPE_ASSIGN_OR_RETURN(tensor.shape, parse_shape(value["shape"], origin));

  const nlohmann::json& offsets = value["data_offsets"];
  const bool is_pair = offsets.is_array() && offsets.size() == 2;
  const std::optional<std::uint64_t> begin = is_pair ? unsigned_number(offsets[0]) : std::nullopt;
  const std::optional<std::uint64_t> end = is_pair ? unsigned_number(offsets[1]) : std::nullopt;
  if (!begin || !end || *begin > *end) {
    return broken(origin, "data_offsets " + offsets.dump() + " are not [begin, end]");
  }
  tensor.begin = *begin;
  tensor.end = *end;

  const std::optional<std::uint64_t> wanted = byte_count(tensor.shape, tensor.dtype);
  if (!wanted) {
    return broken(origin,
                  "shape " + value["shape"].dump() + " of " + std::string(to_string(tensor.dtype)) + " is too large");
  }
  if (*wanted != tensor.end - tensor.begin) {
    return broken(origin,
                  "shape " + value["shape"].dump() + " of " + std::string(to_string(tensor.dtype)) + " needs " +
                      std::to_string(*wanted) + " bytes, data_offsets give " + std::to_string(tensor.end - tensor.begin));
  }
  return tensor;
}

// Sorted by place, each tensor begins where the one before ended, and the last ends with the buffer.
Status check_layout(const std::map<std::string, StoredTensor>& tensors,
                    std::uint64_t buffer_bytes,
                    const std::string& file) {
  std::vector<const std::pair<const std::string, StoredTensor>*> by_place;
  for (const auto& entry : tensors) {
    by_place.push_back(&entry);
  }
  std::ranges::sort(by_place, {}, [](const auto* entry) { return std::tuple(entry->second.begin, entry->second.end); });
  std::uint64_t expected = 0;
  for (const auto* entry : by_place) {
    const auto& [name, tensor] = *entry;
    if (tensor.begin != expected) {
      return broken(file + ": " + name,
                    (tensor.begin < expected ? "overlaps the tensor before it: begins at " : "leaves a hole: begins at ") +
                        std::to_string(tensor.begin) + ", the tensor before it ends at " + std::to_string(expected));
    }
    if (tensor.end > buffer_bytes) {
      return broken(file + ": " + name,
                    "ends at byte " + std::to_string(tensor.end) + " of the buffer, which has " +
                        std::to_string(buffer_bytes) + " (is the file cut off?)");
    }
    expected = tensor.end;
  }
  if (expected != buffer_bytes) {
    return broken(file, std::to_string(buffer_bytes - expected) + " bytes follow the last tensor");
  }
  return {};
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  SafetensorsFile file;
  file.path_ = path;
  MEROPE_ASSIGN_OR_RETURN(file.mapping_, MappedFile::open(path));
  const std::string origin = path.string();
  const std::span<const std::byte> all = file.mapping_->bytes();
  if (all.size() < kLengthBytes) {
    return broken(origin, "has " + std::to_string(all.size()) + " bytes, less than the 8 of the header length");
  }
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, all.data(), sizeof header_bytes);
  if (header_bytes > kMaxHeaderBytes) {
    return broken(origin,
                  "header length " + std::to_string(header_bytes) + " is above the limit of " +
                      std::to_string(kMaxHeaderBytes) + "; this is not a safetensors file");
  }
  if (header_bytes > all.size() - kLengthBytes) {
    return broken(origin, "header of " + std::to_string(header_bytes) + " bytes reaches past the end of the file");
  }
  const std::string_view text(reinterpret_cast<const char*>(all.data()) + kLengthBytes, header_bytes);
  MEROPE_ASSIGN_OR_RETURN(const nlohmann::json header, parse_json_object(text, origin));

  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) {
        return broken(origin, "__metadata__ is not an object");
      }
      for (const auto& [key, entry] : value.items()) {
        if (!entry.is_string()) {
          return broken(origin, "__metadata__ " + key + " is not a string");
        }
        file.metadata_.emplace(key, entry.get<std::string>());
      }
      continue;
    }
    MEROPE_ASSIGN_OR_RETURN(StoredTensor tensor, parse_tensor(value, origin + ": " + name));
    file.tensors_.emplace(name, std::move(tensor));
  }
  file.buffer_at_ = static_cast<std::size_t>(kLengthBytes + header_bytes);
  MEROPE_RETURN_IF_ERROR(check_layout(file.tensors_, all.size() - file.buffer_at_, origin));
  return file;
}

std::span<const std::byte> SafetensorsFile::bytes(const StoredTensor& tensor) const {
  return mapping_->bytes().subspan(buffer_at_ + static_cast<std::size_t>(tensor.begin),
                                   static_cast<std::size_t>(tensor.end - tensor.begin));
}

}  // namespace merope::worker
