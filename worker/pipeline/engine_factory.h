// From a model folder to an engine.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "worker/engine.h"
#include "worker/pipeline/expert_residency.h"

namespace merope::worker {

struct EngineOptions {
  std::filesystem::path model;  // a folder in the diffusers layout
  std::string device = "cpu";   // "cpu", "cuda" (the first device) or "cuda:<n>"
  int threads = 0;              // of ATen and of the CPU kernels, which never run at once; 0: one per core
  ExpertResidency experts = ExpertResidency::kAuto;  // of a model of two transformers
};

// Reads and checks everything, moves the weights to the device and logs the configuration once. On the CPU everything is
// fp32; on a CUDA device text encoder and transformer are bf16 and the autoencoder is fp32. Takes over ATen's thread count
// of the process. kNotFound for a missing folder or file, kDataLoss for broken weights or files, kUnimplemented for a model
// that this code does not build, kInvalidArgument for a device that is no device, kFailedPrecondition when there is no CUDA
// device.
Result<std::unique_ptr<GenerationEngine>> open_engine(const EngineOptions& options);

}  // namespace merope::worker
