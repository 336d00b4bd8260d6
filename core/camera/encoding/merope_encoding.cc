#include "core/camera/encoding/merope_encoding.h"

#include <cmath>
#include <string>

#include "core/base/check.h"
#include "core/camera/epipolar_arc.h"
#include "core/camera/native_phases.h"
#include "core/camera/translation_phases.h"

namespace merope::camera {
namespace {

void append(std::vector<float>& table, const Mat3& matrix) {
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column) {
      table.push_back(static_cast<float>(matrix(row, column)));
    }
  }
}

void append(std::vector<float>& table, const Vec3& vector) {
  for (int axis = 0; axis < 3; ++axis) {
    table.push_back(static_cast<float>(vector(axis)));
  }
}

void append_angles(std::vector<float>& cosines, std::vector<float>& sines, const std::vector<double>& angles) {
  for (const double angle : angles) {
    cosines.push_back(static_cast<float>(std::cos(angle)));
    sines.push_back(static_cast<float>(std::sin(angle)));
  }
}

Status check_inputs(const EncodingInputs& inputs) {
  if (inputs.cameras.empty()) {
    return invalid_argument("cameras: there are none");
  }
  if (inputs.grid.rows < 1 || inputs.grid.columns < 1) {
    return invalid_argument("grid: " + std::to_string(inputs.grid.rows) + " x " + std::to_string(inputs.grid.columns) +
                            " tokens");
  }
  if (!inputs.latent_frames.empty() && inputs.latent_frames.size() != inputs.cameras.size()) {
    return invalid_argument("latent_frames: " + std::to_string(inputs.latent_frames.size()) + " for " +
                            std::to_string(inputs.cameras.size()) + " cameras");
  }
  for (std::size_t i = 0; i < inputs.cameras.size(); ++i) {
    const Pose& pose = inputs.cameras[i].c2w;
    const double error = orthonormality_error(pose.rotation);
    // Not "error > ...": a NaN must not pass.
    if (!(error <= 1e-3) || !pose.centre.allFinite()) {
      return invalid_argument("cameras[" + std::to_string(i) + "]: its pose is not a rigid transform");
    }
    if (!validate(inputs.cameras[i].lens).empty()) {
      return invalid_argument("cameras[" + std::to_string(i) + "]: its lens is not valid");
    }
  }
  return {};
}

// What a camera brings into every table.
struct PreparedCamera {
  Pose c2w;
  RayGrid grid;
};

void fill_token_tables(const std::vector<PreparedCamera>& cameras, const EncodingInputs& inputs, EncodingTables& tables) {
  const NativeFrequencyTable frequencies = native_frequency_table(tables.config);
  for (std::size_t i = 0; i < cameras.size(); ++i) {
    const double latent_frame = inputs.latent_frames.empty() ? static_cast<double>(i) : inputs.latent_frames[i];
    for (int index = 0; index < inputs.grid.size(); ++index) {
      const Mat3 frame = min_rot(cameras[i].grid.rays_c[static_cast<std::size_t>(index)], tables.config.pole);
      append(tables.token_frame, frame);
      append(tables.ray_frame, Mat3(cameras[i].c2w.rotation * frame));
      const Vec3 position(latent_frame, index % inputs.grid.columns, index / inputs.grid.columns);
      append_angles(tables.native_cos, tables.native_sin, native_phases(position, frequencies, tables.config.native_order));
    }
  }
}

void fill_pair_tables(const std::vector<PreparedCamera>& cameras, EncodingTables& tables) {
  const EncodingConfig& config = tables.config;
  const std::vector<double> omega =
      translation_frequencies(config.partition.n_wavelengths(), config.min_wavelength_m, config.max_wavelength_m);
  const ArcRule rule{config.min_baseline_m, config.eps_parallel};
  for (const PreparedCamera& query : cameras) {
    for (const PreparedCamera& key : cameras) {
      const Pose relative = relative_pose(query.c2w, key.c2w);
      append_angles(tables.trans_cos, tables.trans_sin, translation_phases(relative.centre, omega));
      for (const Vec3& ray_c : key.grid.rays_c) {
        // A camera seen from itself keeps its rays to the last bit: there its disparity part equals its rotation part.
        const Vec3 u_inf = &query == &key ? ray_c : Vec3(relative.rotation * ray_c);
        const EpipolarArc arc = epipolar_arc(u_inf, relative.centre, rule);
        append(tables.arcs, arc.u_inf);
        append(tables.arcs, arc.t_hat);
        tables.arcs.push_back(static_cast<float>(arc.beta_max_rad));
      }
    }
  }
}

bool all_finite(const std::vector<float>& table) {
  for (const float value : table) {
    if (!std::isfinite(value)) {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<EncodingTables> prepare_merope_encoding(const EncodingConfig& config, const EncodingInputs& inputs) {
  MEROPE_RETURN_IF_ERROR(validate(config));
  MEROPE_RETURN_IF_ERROR(check_inputs(inputs));

  EncodingTables tables;
  tables.config = config;
  tables.n_cameras = static_cast<int>(inputs.cameras.size());
  tables.n_tokens = tables.n_cameras * inputs.grid.size();
  tables.rho.assign(config.rho.begin(), config.rho.end());
  std::vector<PreparedCamera> cameras;
  cameras.reserve(inputs.cameras.size());
  for (const TrajectoryFrame& camera : inputs.cameras) {
    tables.camera_begin.push_back(static_cast<int>(cameras.size()) * inputs.grid.size());
    cameras.push_back({{nearest_rotation(camera.c2w.rotation), camera.c2w.centre},
                       ray_grid(camera.lens, inputs.grid, config.token_centre, config.invalid_ray_policy)});
    tables.n_invalid_rays += cameras.back().grid.n_invalid;
  }
  tables.camera_begin.push_back(tables.n_tokens);
  fill_token_tables(cameras, inputs, tables);
  fill_pair_tables(cameras, tables);

  // One NaN here would poison a whole softmax. Valid poses and lenses can not cause one.
  for (const std::vector<float>* table : {&tables.token_frame,
                                          &tables.ray_frame,
                                          &tables.native_cos,
                                          &tables.native_sin,
                                          &tables.trans_cos,
                                          &tables.trans_sin,
                                          &tables.arcs}) {
    MEROPE_CHECK(all_finite(*table), "an encoding table holds a number that is not finite");
  }
  return tables;
}

}  // namespace merope::camera
