#include "core/camera/encoding/encodings.h"

#include <string>

#include "core/camera/encoding/merope_encoding.h"

namespace merope::camera {
namespace {

constexpr CameraEncoding kEncodings[] = {
    {"merope", kMeropeTraits, &prepare_merope_encoding},
};

}  // namespace

std::span<const CameraEncoding> encodings() {
  return kEncodings;
}

std::vector<std::string_view> encoding_names() {
  std::vector<std::string_view> names;
  for (const CameraEncoding& encoding : kEncodings) {
    names.push_back(encoding.name);
  }
  return names;
}

Result<const CameraEncoding*> find_encoding(std::string_view name) {
  std::string known;
  for (const CameraEncoding& encoding : kEncodings) {
    if (encoding.name == name) {
      return &encoding;
    }
    known += (known.empty() ? "" : ", ") + std::string(encoding.name);
  }
  return invalid_argument("encoding '" + std::string(name) + "' is not one of " + known);
}

Result<EncodingTables> prepare_encoding(std::string_view name,
                                        const EncodingConfig& config,
                                        std::span<const TrajectoryFrame> latent_cameras,
                                        const TokenGrid& grid) {
  MEROPE_ASSIGN_OR_RETURN(const CameraEncoding* encoding, find_encoding(name));
  return encoding->prepare(config, {latent_cameras, grid, {}});
}

}  // namespace merope::camera
