// The MeRoPE-conditioned Wan pipeline: a spec and conditioning frames in, frames out.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "worker/engine.h"
#include "worker/model/kernels_bridge.h"
#include "worker/model/vae/wan_vae.h"
#include "worker/pipeline/checkpoint.h"
#include "worker/pipeline/experts.h"
#include "worker/pipeline/prompt_encoder.h"

namespace merope::worker {

// Rows of text that the transformer was trained to see.
inline constexpr std::int64_t kTextRows = 512;

// Clips of at most so many tokens take both guidance branches through the transformer at once: there the weights are most of
// what a pass reads. It is a number of the request alone, never of the memory that happens to be free, so that the same
// request gives the same bytes.
inline constexpr std::int64_t kOnePassTokens = 512;

// The loaded parts of a model. threads: what the CPU kernels run on.
struct WanParts {
  Checkpoint checkpoint;
  PromptEncoder text;
  WanVae vae;
  Experts experts;
  const kernels::KernelTable* cpu_kernels = nullptr;
  std::unique_ptr<kernels::ParallelFor> threads;
};

// Stages of a job: camera tables, text, conditioning frames, denoising, decoding. ATen's exceptions end here.
class WanPipeline final : public GenerationEngine {
 public:
  explicit WanPipeline(WanParts parts) : parts_(std::move(parts)) {}

  const ModelDescription& description() const override { return parts_.checkpoint.description; }
  std::string device() const override;
  Result<GenerationReport> generate(const GenerationSpec& spec,
                                    const media::RgbFrames& conditioning,
                                    GenerationObserver& observer) override;

 private:
  Status check(const GenerationSpec& spec, const media::RgbFrames& conditioning) const;
  Result<GenerationReport> run(const GenerationSpec& spec,
                               const media::RgbFrames& conditioning,
                               GenerationObserver& observer);
  // Null when the checkpoint has no camera branch.
  Result<std::unique_ptr<CameraAttention>> camera_attention(const GenerationSpec& spec, const TokenGrid& grid) const;

  WanParts parts_;
};

}  // namespace merope::worker
