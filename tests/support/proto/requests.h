// Requests for tests: a good one to begin with, and a model that it fits.
#pragma once

#include <cstdint>

#include "merope/v1/generation.pb.h"
#include "proto/spec/generation_spec.h"

namespace merope::testing {

inline ModelDescription toy_model() {
  ModelDescription model;
  model.name = "toy";
  model.architecture = "Wan2.2-TI2V";
  model.encodings = {"merope", "none"};
  model.size_multiple = 32;
  model.default_width = 64;
  model.default_height = 32;
  model.default_fps = 8;
  model.default_steps = 4;
  model.trained = false;
  return model;
}

// A straight drive along z, one shared lens of the toy model's size.
inline v1::GenerationRequest good_request(int n_frames = 9) {
  v1::GenerationRequest request;
  v1::Trajectory& trajectory = *request.mutable_trajectory();
  trajectory.set_pose_direction(v1::POSE_DIRECTION_CAMERA_TO_WORLD);
  trajectory.set_camera_axes(v1::CAMERA_AXES_OPENCV);
  trajectory.set_length_unit(v1::LENGTH_UNIT_METRE);
  v1::Lens& lens = *trajectory.mutable_lens();
  lens.set_width(64);
  lens.set_height(32);
  lens.mutable_pinhole()->set_fx(40);
  lens.mutable_pinhole()->set_fy(40);
  lens.mutable_pinhole()->set_cx(32);
  lens.mutable_pinhole()->set_cy(16);
  for (int i = 0; i < n_frames; ++i) {
    v1::TrajectoryFrame& frame = *trajectory.add_frames();
    for (const double number : {1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.5 * i}) {
      frame.add_pose(number);
    }
  }
  return request;
}

}  // namespace merope::testing
