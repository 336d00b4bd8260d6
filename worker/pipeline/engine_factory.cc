#include "worker/pipeline/engine_factory.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <charconv>
#include <thread>
#include <vector>

#include "core/base/log.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/dispatch.h"
#include "worker/model/checkpoint_weights.h"
#include "worker/pipeline/exceptions.h"
#include "worker/pipeline/wan_pipeline.h"

namespace merope::worker {
namespace {

Result<at::Device> parse_device(const std::string& text) {
  if (text == "cpu") {
    return at::Device(at::kCPU);
  }
  int index = 0;
  const std::string number = text.starts_with("cuda:") ? text.substr(5) : text == "cuda" ? "0" : "";
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (number.empty() || error != std::errc() || end != number.data() + number.size() || index < 0 || index > 127) {
    return invalid_argument("device: '" + text + "' is not cpu, cuda or cuda:<n>");
  }
  const std::size_t n_devices = at::getNumGPUs();
  if (static_cast<std::size_t>(index) >= n_devices) {
#ifdef MEROPE_TORCH_CUDA
    const std::string why = n_devices == 0 ? "no GPU with a working driver is visible to this process"
                                           : "there are only " + std::to_string(n_devices);
#else
    const std::string why = "this build is without CUDA";
#endif
    return Error{ErrorCode::kFailedPrecondition, "no CUDA device: " + text + " was asked for, and " + why};
  }
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
}

template <typename Model, typename Config>
Result<Model> load_component(const Config& config,
                             const std::filesystem::path& folder,
                             at::Device device,
                             at::ScalarType dtype) {
  MEROPE_ASSIGN_OR_RETURN(const std::unique_ptr<const CheckpointWeights> weights, CheckpointWeights::open(folder));
  return Model::load(config, *weights, device, dtype);
}

Result<std::unique_ptr<GenerationEngine>> open(const EngineOptions& options) {
  MEROPE_ASSIGN_OR_RETURN(const at::Device device, parse_device(options.device));
  MEROPE_ASSIGN_OR_RETURN(Checkpoint checkpoint, read_checkpoint(options.model));
  const kernels::BackendChoice kernels = kernels::choose_cpu_backend();
  if (kernels.table == nullptr) {
    return Error{ErrorCode::kFailedPrecondition, kernels.error};
  }
  const int n_threads =
      options.threads > 0 ? options.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  at::set_num_threads(n_threads);

  const at::ScalarType dtype = device.is_cpu() ? at::kFloat : at::kBFloat16;
  MEROPE_ASSIGN_OR_RETURN(PromptEncoder text, PromptEncoder::open(options.model, device, dtype));
  const WanConfig& config = checkpoint.transformers.front().config;
  if (text.text_dim() != config.text_dim) {
    return Error{ErrorCode::kDataLoss,
                 (options.model / "text_encoder" / "config.json").string() + ": d_model " + std::to_string(text.text_dim()) +
                     " is not the transformer's text_dim " + std::to_string(config.text_dim)};
  }
  MEROPE_ASSIGN_OR_RETURN(WanVae vae, load_component<WanVae>(checkpoint.vae, options.model / "vae", device, at::kFloat));
  std::vector<Experts::Member> members;
  for (const TransformerPart& part : checkpoint.transformers) {
    MEROPE_ASSIGN_OR_RETURN(std::unique_ptr<const CheckpointWeights> weights, CheckpointWeights::open(part.files));
    members.push_back({part.config, std::move(weights)});
  }
  MEROPE_ASSIGN_OR_RETURN(Experts experts, Experts::load(std::move(members), device, dtype, options.experts));

  const ModelDescription& description = checkpoint.description;
  if (experts.camera() == nullptr) {
    // The same as a camera branch in its initial state, whose output is zero.
    log::warn("the checkpoint has no camera branch: the trajectory does not steer the video", {{"model", description.name}});
  }
  if (!description.trained) {
    log::warn("the checkpoint is not trained: its pictures mean nothing", {{"model", description.name}});
  }
  log::info("model loaded",
            {{"model", description.name},
             {"architecture", description.architecture},
             {"device", device.str()},
             {"dtype", at::toString(dtype)},
             {"threads", n_threads},
             {"kernels", device.is_cpu() ? kernels.table->name : "none"},
             {"transformers", experts.size()},
             {"blocks", config.n_layers},
             {"width", config.dim()},
             {"camera_blocks", experts.camera() != nullptr ? experts.camera()->injection_blocks.size() : 0}});
  WanParts parts{std::move(checkpoint),
                 std::move(text),
                 std::move(vae),
                 std::move(experts),
                 kernels.table,
                 std::make_unique<kernels::ThreadPool>(n_threads)};
  return std::unique_ptr<GenerationEngine>(std::make_unique<WanPipeline>(std::move(parts)));
}

}  // namespace

Result<std::unique_ptr<GenerationEngine>> open_engine(const EngineOptions& options) {
  return errors_from_exceptions("loading " + options.model.string(), [&] { return open(options); });
}

}  // namespace merope::worker
