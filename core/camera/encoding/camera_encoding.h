// What a camera encoding is: a name, what it touches in attention, and a function that turns cameras into tables.
#pragma once

#include <span>
#include <string_view>

#include "core/base/result.h"
#include "core/camera/encoding/encoding_config.h"
#include "core/camera/encoding/encoding_tables.h"
#include "core/camera/ray_grid.h"
#include "core/camera/trajectory.h"

namespace merope::camera {

// What the encoding acts on, so that a model can say beforehand whether it can carry it.
struct EncodingTraits {
  bool queries = false;
  bool keys = false;
  bool values = false;
  bool outputs = false;      // the attention output gets the query side's inverse
  bool grouped = false;      // keys and values depend on the query camera
  bool additive = false;     // adds features to tokens instead
  bool learned = false;      // has weights of its own
  bool world_frame = false;  // depends on where the world's origin is
};

struct EncodingInputs {
  std::span<const TrajectoryFrame> cameras;  // one per latent frame and view; any world frame, metres
  TokenGrid grid;                            // tokens of each camera; its lens is scaled to it
  std::span<const int> latent_frames = {};   // time position of each camera; empty: 0, 1, 2, ...
};

struct CameraEncoding {
  std::string_view name;
  EncodingTraits traits;
  Result<EncodingTables> (*prepare)(const EncodingConfig& config, const EncodingInputs& inputs);
};

}  // namespace merope::camera
