// u = fx x/z + cx, v = fy y/z + cy.
#pragma once

namespace merope::camera {

struct Pinhole {
  double fx = 0;  // pixels, > 0
  double fy = 0;
  double cx = 0;
  double cy = 0;
};

}  // namespace merope::camera
