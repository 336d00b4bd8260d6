// The operations of one backend. A new backend fills one of these; a new operation is one more member.
#pragma once

#include <string_view>

#include "kernels/cam_attention.h"

namespace merope::kernels {

struct KernelTable {
  std::string_view name;  // "scalar": also the value of MEROPE_CPU_ISA that asks for it
  CamAttentionKernel cam_attention;
};

}  // namespace merope::kernels
