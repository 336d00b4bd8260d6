// A model folder in the diffusers layout: what model_index.json says of it, before any weight is read.
//
//   model_index.json   transformer/   vae/   text_encoder/   tokenizer/   scheduler/
//
// The optional object "_merope" of model_index.json is ours: "name", "trained" (false: deterministic weights whose pictures
// mean nothing) and the defaults of requests "width", "height", "fps", "steps", "guidance_scale". Diffusers ignores it.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/result.h"
#include "worker/model/vae/vae_config.h"
#include "worker/model/wan_config.h"
#include "worker/schedule/schedulers.h"

namespace merope::worker {

struct Checkpoint {
  std::filesystem::path folder;
  ModelDescription description;
  // Whether the model was trained with a timestep per token, which a clean prefix needs.
  bool expand_timesteps = false;
  WanConfig transformer;
  VaeConfig vae;
  SchedulerSettings scheduler;
};

// kNotFound when the folder or a file is not there; kUnimplemented, by name, for a pipeline, component or class that is not
// built (a second transformer, an image encoder, another scheduler); kDataLoss for values that do not fit together.
Result<Checkpoint> read_checkpoint(const std::filesystem::path& folder);

// The whole file as text; kNotFound when there is none.
Result<std::string> read_text_file(const std::filesystem::path& path);

}  // namespace merope::worker
