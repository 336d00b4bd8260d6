// U_ab as a full matrix in double: slow and obvious, what every faster form is compared with (MeRoPE Eq. 11).
#pragma once

#include <Eigen/Core>

#include "core/camera/encoding/encoding_config.h"
#include "core/camera/pose.h"

namespace merope::camera {

struct DenseToken {
  Pose c2w;
  Vec3 ray_c = Vec3::UnitZ();    // unit, camera frame
  Vec3 position = Vec3::Zero();  // latent frame, column, row
};

// [head_dim, head_dim], orthogonal. The score of the pair is query^T U key / sqrt(head_dim). config must be valid.
Eigen::MatrixXd dense_operator(const EncodingConfig& config, const DenseToken& query, const DenseToken& key);

}  // namespace merope::camera
