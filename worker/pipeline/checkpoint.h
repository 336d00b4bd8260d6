// A model folder in the diffusers layout: what model_index.json says of it, before any weight is read.
//
//   model_index.json   transformer/   [transformer_2/]   vae/   text_encoder/   tokenizer/   scheduler/
//
// The optional object "_merope" of model_index.json is ours: "name", "trained" (false: deterministic weights whose pictures
// mean nothing) and the defaults of requests "width", "height", "fps", "steps", "guidance_scale". Diffusers ignores it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "worker/model/vae/vae_config.h"
#include "worker/model/wan_config.h"
#include "worker/schedule/schedulers.h"

namespace merope::worker {

// A transformer and the folder of its weights.
struct TransformerPart {
  WanConfig config;
  std::filesystem::path files;
};

// How a model takes conditioning frames.
enum class Conditioning {
  kNone,           // it does not
  kCleanPrefix,    // they stay clean among the noisy frames, with timesteps of their own: optional
  kInputChannels,  // as channels of its input (image_condition()): needed
};

struct Checkpoint {
  std::filesystem::path folder;
  ModelDescription description;
  Conditioning conditioning = Conditioning::kNone;
  // One, or two experts: the first for timesteps from the boundary up, the second for those below it.
  std::vector<TransformerPart> transformers;
  double boundary_ratio = 0;  // of the number of training timesteps
  VaeConfig vae;
  SchedulerSettings scheduler;
};

// kNotFound when the folder or a file is not there; kUnimplemented, by name, for a pipeline, component or class that is not
// built (an image encoder, VACE, another scheduler); kDataLoss for values that do not fit together.
Result<Checkpoint> read_checkpoint(const std::filesystem::path& folder);

// The whole file as text; kNotFound when there is none.
Result<std::string> read_text_file(const std::filesystem::path& path);

}  // namespace merope::worker
