// The backend without instruction-set extensions: it runs everywhere and is what the others are compared with.
#pragma once

#include "kernels/kernel_table.h"

namespace merope::kernels {

const KernelTable& scalar_kernels();

}  // namespace merope::kernels
