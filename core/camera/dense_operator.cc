#include "core/camera/dense_operator.h"

#include <cmath>

#include "core/camera/epipolar_arc.h"
#include "core/camera/native_phases.h"
#include "core/camera/translation_phases.h"

namespace merope::camera {
namespace {

// Rotates the pairs of a band of 2n channels that begins at `begin` by n angles.
void place_rotations(Eigen::MatrixXd& u, int begin, const double* angles, int n, PairLayout layout) {
  for (int m = 0; m < n; ++m) {
    const int first = begin + (layout == PairLayout::kAdjacent ? 2 * m : m);
    const int second = layout == PairLayout::kAdjacent ? first + 1 : first + n;
    u(first, first) = u(second, second) = std::cos(angles[m]);
    u(first, second) = -std::sin(angles[m]);
    u(second, first) = std::sin(angles[m]);
  }
}

}  // namespace

Eigen::MatrixXd dense_operator(const EncodingConfig& config, const DenseToken& query, const DenseToken& key) {
  const HeadPartition& p = config.partition;
  Eigen::MatrixXd u = Eigen::MatrixXd::Identity(p.head_dim(), p.head_dim());
  const Pose relative = relative_pose(query.c2w, key.c2w);
  const Mat3 query_frame = min_rot(query.ray_c, config.pole);

  if (config.disparity_on && p.disparity > 0) {
    const int n_anchors = static_cast<int>(config.rho.size());
    const int copies = p.disparity / (3 * n_anchors);
    const EpipolarArc arc =
        epipolar_arc(relative.rotation * key.ray_c, relative.centre, {config.min_baseline_m, config.eps_parallel});
    for (int anchor = 0; anchor < n_anchors; ++anchor) {
      const Vec3 direction = anchor_direction(arc, config.rho[static_cast<std::size_t>(anchor)]);
      const Mat3 block = query_frame.transpose() * min_rot(direction, config.pole);
      for (int copy = 0; copy < copies; ++copy) {
        u.block<3, 3>(3 * (anchor * copies + copy), 3 * (anchor * copies + copy)) = block;
      }
    }
  }
  int begin = p.disparity;
  if (config.rotation_on) {
    const Mat3 block = query_frame.transpose() * relative.rotation * min_rot(key.ray_c, config.pole);
    for (int c = begin; c < begin + p.rotation; c += 3) {
      u.block<3, 3>(c, c) = block;
    }
  }
  begin += p.rotation;
  if (config.translation_on) {
    const int n = p.n_wavelengths();
    const std::vector<double> angles =
        translation_phases(relative.centre, translation_frequencies(n, config.min_wavelength_m, config.max_wavelength_m));
    for (int axis = 0; axis < 3; ++axis) {
      place_rotations(u, begin + 2 * n * axis, angles.data() + n * axis, n, config.pair_layout);
    }
  }
  begin += p.translation;
  if (config.native_on) {
    const std::vector<double> angles =
        native_phases(key.position - query.position, native_frequency_table(config), config.native_order);
    const bool x_first = config.native_order == NativeOrder::kTimeXY;
    const double* next = angles.data();
    for (const int width : {p.native_time, x_first ? p.native_x : p.native_y, x_first ? p.native_y : p.native_x}) {
      place_rotations(u, begin, next, width / 2, config.pair_layout);
      begin += width;
      next += width / 2;
    }
  }
  return u;
}

}  // namespace merope::camera
