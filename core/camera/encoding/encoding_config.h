// Every choice of the camera encoding that shapes what a trained branch means: a checkpoint stores them. The defaults are
// the paper's, and where the paper is silent those of docs/mathematics.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/camera/head_partition.h"
#include "core/camera/min_rot.h"
#include "core/camera/ray_grid.h"

namespace merope::camera {

// Which two channels of a band of n form a rotated pair m: (2m, 2m + 1), or (m, m + n/2) as in split-half RoPE.
enum class PairLayout { kAdjacent, kSplitHalf };
// Order of the image axes in the native part: column before row, or row before column as in Wan's own RoPE.
enum class NativeOrder { kTimeXY, kTimeYX };
// kSubBand: base^(-2m/width of the sub-band). kBackbonePrefix: the fastest frequencies of the backbone's own table, which
// splits a head of D into D - 4 (D/6), 2 (D/6), 2 (D/6) channels for time, height, width.
enum class NativeFrequencies { kSubBand, kBackbonePrefix };
// Which RGB frame's pose a latent frame has: 4l, the last of its group.
enum class PoseOfLatent { kLastFrame };

struct EncodingConfig {
  HeadPartition partition;

  // Disparity fractions of the anchors, ascending in [0, 1] (Eq. 9).
  std::vector<double> rho = {0, 0.05, 0.15, 0.4, 0.7, 1};
  // Wavelengths run geometrically from min to max, one per pair of an axis (Eq. 7). min = max is the single-frequency
  // variant.
  double min_wavelength_m = 0.5;
  double max_wavelength_m = 200;

  PairLayout pair_layout = PairLayout::kAdjacent;
  NativeOrder native_order = NativeOrder::kTimeXY;
  NativeFrequencies native_frequencies = NativeFrequencies::kSubBand;
  double native_base = 10000;
  int backbone_head_dim = 128;  // for kBackbonePrefix

  // Centres nearer than this count as one: all anchors become the direction at infinity. 0.02 suits logs with centimetre
  // noise.
  double min_baseline_m = 1e-4;
  // |u_inf x epipole| up to here counts as parallel or antiparallel; the anchors collapse likewise.
  double eps_parallel = 1e-6;
  PoleRule pole;

  TokenCentre token_centre = TokenCentre::kMiddle;
  InvalidRayPolicy invalid_ray_policy = InvalidRayPolicy::kClamp;
  PoseOfLatent pose_of_latent = PoseOfLatent::kLastFrame;

  // A part that is off is the identity on its channels (the ablations of the paper).
  bool disparity_on = true;
  bool rotation_on = true;
  bool translation_on = true;
  bool native_on = true;

  bool operator==(const EncodingConfig&) const = default;
};

// Whether the values are usable; the message names the key and the value.
Status validate(const EncodingConfig& config);

// A JSON object whose keys are the fields above ("partition" an object, enumerations as text: "adjacent", "split_half",
// "time_x_y", ...). Absent keys keep their defaults; a key that is not known, or a value of the wrong kind, is an error that
// names it. The result is validated.
Result<EncodingConfig> encoding_config_from_json(std::string_view text);
// Every key, so that a later change of a default can not change the meaning of a checkpoint.
std::string to_json(const EncodingConfig& config);

}  // namespace merope::camera
