#include "core/camera/head_partition.h"

#include <string>

namespace merope::camera {
namespace {

Error bad_width(const char* name, int value, const std::string& what) {
  return invalid_argument("partition." + std::string(name) + ": " + std::to_string(value) + " " + what);
}

}  // namespace

Result<HeadPartition> default_head_partition(int head_dim) {
  if (head_dim <= 0 || head_dim % 64 != 0) {
    return invalid_argument("head_dim: " + std::to_string(head_dim) +
                            " is not a multiple of 64, so its partition must be named");
  }
  const int n = head_dim / 64;
  return HeadPartition{18 * n, 18 * n, 12 * n, 8 * n, 4 * n, 4 * n};
}

Status validate(const HeadPartition& partition, int head_dim, int n_anchors) {
  const struct {
    const char* name;
    int width;
    int multiple;
  } kParts[] = {
      {"disparity", partition.disparity, 3 * n_anchors},
      {"rotation", partition.rotation, 3},
      {"translation", partition.translation, 6},
      {"native_time", partition.native_time, 2},
      {"native_x", partition.native_x, 2},
      {"native_y", partition.native_y, 2},
  };
  for (const auto& part : kParts) {
    if (part.width < 0 || part.width > 65536) {
      return bad_width(part.name, part.width, "is not in 0 to 65536");
    }
    if (part.multiple == 0 ? part.width != 0 : part.width % part.multiple != 0) {
      return bad_width(part.name, part.width, "is not a multiple of " + std::to_string(part.multiple));
    }
  }
  if (partition.head_dim() != head_dim) {
    return invalid_argument("partition: adds up to " + std::to_string(partition.head_dim()) + ", the head has " +
                            std::to_string(head_dim));
  }
  return {};
}

}  // namespace merope::camera
