// How the channels of a head of the camera branch are divided among the four parts of U_ab (MeRoPE Eq. 11):
//
//   [0, disparity)   [.., +rotation)   [.., +translation)   [.., +native_time + native_x + native_y)
//
// disparity:   c = (anchor * copies + copy) * 3 + axis, anchors in the order of rho
// rotation:    c = copy * 3 + axis
// translation: per axis (x, y, z of the displacement) one pair of channels a wavelength, short to long
// native:      pairs for the latent frame, then for the column, then for the row (or row before column, see NativeOrder)
#pragma once

#include "core/base/result.h"

namespace merope::camera {

struct HeadPartition {
  int disparity = 36;    // a multiple of 3 * anchors
  int rotation = 36;     // a multiple of 3
  int translation = 24;  // a multiple of 6: 3 axes of pairs
  int native_time = 16;  // even, like the next two
  int native_x = 8;
  int native_y = 8;

  int native() const { return native_time + native_x + native_y; }
  int head_dim() const { return disparity + rotation + translation + native(); }
  int n_wavelengths() const { return translation / 6; }

  bool operator==(const HeadPartition&) const = default;
};

// The partition of the paper, scaled: 36+36+24+32 for a head of 128, 54+54+36+48 for 192, and so for every multiple of 64.
// Other widths are an error: such a model has to name its partition.
Result<HeadPartition> default_head_partition(int head_dim);

// Whether the widths fit together and add up to head_dim; the message names the width that does not.
Status validate(const HeadPartition& partition, int head_dim, int n_anchors);

}  // namespace merope::camera
