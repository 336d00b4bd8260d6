// Camera attention on made-up cameras and features, and what it should give: Eq. 1 in double with U_ab as full matrices.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/camera/dense_operator.h"
#include "core/camera/encoding/encodings.h"
#include "kernels/cam_attention.h"
#include "tests/camera/random_geometry.h"

namespace merope::kernels {

struct CamProblem {
  camera::EncodingConfig config;
  std::vector<camera::TrajectoryFrame> cameras;
  camera::TokenGrid grid;
  int n_heads = 1;

  camera::EncodingTables tables;
  std::vector<float> q, k, v, o;  // [n_tokens, n_heads, head_dim]

  int head_dim() const { return config.partition.head_dim(); }
  int n_tokens() const { return tables.n_tokens; }

  // Tables of the cameras, and features from the seed.
  void fill(unsigned seed) {
    tables = camera::prepare_encoding("merope", config, cameras, grid).value();
    camera::RandomGeometry random(seed);
    for (std::vector<float>* x : {&q, &k, &v, &o}) {
      x->assign(static_cast<std::size_t>(n_tokens()) * n_heads * head_dim(), 0.0F);
      for (float& value : *x) {
        value = static_cast<float>(random.uniform(-1.7, 1.7));
      }
    }
  }

  CamAttentionArgs args() {
    const camera::HeadPartition& p = config.partition;
    CamAttentionArgs a;
    a.q = q.data();
    a.k = k.data();
    a.v = v.data();
    a.o = o.data();
    a.n_tokens = n_tokens();
    a.n_heads = n_heads;
    a.scale = static_cast<float>(1 / std::sqrt(head_dim()));
    const bool x_first = config.native_order == camera::NativeOrder::kTimeXY;
    a.partition = {p.disparity,
                   p.rotation,
                   p.translation,
                   p.native_time,
                   x_first ? p.native_x : p.native_y,
                   x_first ? p.native_y : p.native_x};
    a.pair_layout =
        config.pair_layout == camera::PairLayout::kAdjacent ? CamPairLayout::kAdjacent : CamPairLayout::kSplitHalf;
    CamTables& t = a.tables;
    t.n_cameras = tables.n_cameras;
    t.n_anchors = static_cast<int>(tables.rho.size());
    t.camera_begin = tables.camera_begin.data();
    t.rho = tables.rho.data();
    t.token_frame = tables.token_frame.data();
    t.ray_frame = tables.ray_frame.data();
    t.native_cos = tables.native_cos.data();
    t.native_sin = tables.native_sin.data();
    t.trans_cos = tables.trans_cos.data();
    t.trans_sin = tables.trans_sin.data();
    t.arcs = tables.arcs.data();
    t.eps_pole = static_cast<float>(config.pole.eps);
    const camera::Vec3 diagonal = camera::pole_diagonal(config.pole.fallback);
    for (int axis = 0; axis < 3; ++axis) {
      t.pole_diagonal[axis] = static_cast<float>(diagonal(axis));
    }
    t.disparity_on = config.disparity_on;
    t.rotation_on = config.rotation_on;
    t.translation_on = config.translation_on;
    t.native_on = config.native_on;
    return a;
  }

  // Runs a kernel; o holds the result.
  void run(const CamAttentionKernel& kernel, ParallelFor& parallel) {
    const CamAttentionArgs a = args();
    MEROPE_CHECK(kernel.can_run(a), kernel.can_run(a).reason);
    const std::size_t bytes = kernel.workspace_bytes(a, parallel.n_threads());
    std::vector<float> storage(bytes / sizeof(float) + 16,
                               std::nanf(""));  // a kernel that reads what it has not written fails
    void* workspace = storage.data();
    std::size_t room = storage.size() * sizeof(float);
    kernel.run(a, std::align(64, bytes, workspace, room), parallel);
  }

  camera::DenseToken dense_token(int token) const {
    const int camera = token / grid.size();
    const int index = token % grid.size();
    const camera::RayGrid rays =
        camera::ray_grid(cameras[camera].lens, grid, config.token_centre, config.invalid_ray_policy);
    return {cameras[camera].c2w, rays.rays_c[index], camera::Vec3(camera, index % grid.columns, index / grid.columns)};
  }

  // [n_tokens, n_heads, head_dim]; the only thing shared with the kernel is what q, k, v hold.
  std::vector<double> expected() const {
    const int d = head_dim();
    const int n = n_tokens();
    std::vector<camera::DenseToken> tokens;
    for (int token = 0; token < n; ++token) {
      tokens.push_back(dense_token(token));
    }
    const auto vector_at = [&](const std::vector<float>& x, int token, int head) {
      return Eigen::Map<const Eigen::VectorXf>(x.data() + (static_cast<std::ptrdiff_t>(token) * n_heads + head) * d, d)
          .cast<double>()
          .eval();
    };
    std::vector<double> result(q.size());
    for (int a = 0; a < n; ++a) {
      std::vector<Eigen::MatrixXd> operators;
      for (int b = 0; b < n; ++b) {
        operators.push_back(camera::dense_operator(config, tokens[a], tokens[b]));
      }
      for (int head = 0; head < n_heads; ++head) {
        Eigen::VectorXd scores(n);
        for (int b = 0; b < n; ++b) {
          scores(b) = vector_at(q, a, head).dot(operators[b] * vector_at(k, b, head)) / std::sqrt(d);
        }
        const Eigen::VectorXd weights = (scores.array() - scores.maxCoeff()).exp();
        Eigen::VectorXd sum = Eigen::VectorXd::Zero(d);
        for (int b = 0; b < n; ++b) {
          sum += weights(b) / weights.sum() * (operators[b] * vector_at(v, b, head));
        }
        std::copy_n(sum.data(), d, result.data() + (static_cast<std::ptrdiff_t>(a) * n_heads + head) * d);
      }
    }
    return result;
  }
};

inline camera::Lens street_lens() {
  return {512, 288, camera::pinhole_from_fov(512, 288, 1.2217304764)};
}

// Cameras anywhere within reach_m of an offset, looking anywhere.
inline std::vector<camera::TrajectoryFrame> random_cameras(int n, double reach_m, camera::RandomGeometry& random) {
  std::vector<camera::TrajectoryFrame> cameras;
  for (int i = 0; i < n; ++i) {
    cameras.push_back({random.pose(reach_m), 0.1 * i, street_lens()});
  }
  return cameras;
}

// The largest difference, and where it is.
inline std::string worst_difference(const std::vector<float>& got, const std::vector<double>& expected, double& worst) {
  worst = 0;
  std::string text = "equal";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i]);
    if (!(difference <= worst)) {
      worst = std::isnan(difference) ? INFINITY : difference;
      text = "index " + std::to_string(i) + ": " + std::to_string(got[i]) + " for " + std::to_string(expected[i]);
    }
  }
  return text;
}

}  // namespace merope::kernels
