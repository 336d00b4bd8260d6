#include "worker/model/kernels_bridge.h"

#include <ATen/ATen.h>

#include <cmath>

#include "worker/model/cam_attention_folded.h"

namespace merope::worker {
namespace {

constexpr std::size_t kExpandedBytesCpu = std::size_t{64} << 20U;
constexpr std::size_t kExpandedBytesDevice = std::size_t{1} << 30U;

// The arrays of `tables`, which must outlive the result.
kernels::CamAttentionArgs args_of(const camera::EncodingTables& tables) {
  const camera::EncodingConfig& config = tables.config;
  const camera::HeadPartition& p = config.partition;
  const bool x_first = config.native_order == camera::NativeOrder::kTimeXY;
  const camera::Vec3 pole = camera::pole_diagonal(config.pole.fallback);
  kernels::CamAttentionArgs args;
  args.n_tokens = tables.n_tokens;
  args.partition = {.disparity = p.disparity,
                    .rotation = p.rotation,
                    .translation = p.translation,
                    .native_time = p.native_time,
                    .native_1 = x_first ? p.native_x : p.native_y,
                    .native_2 = x_first ? p.native_y : p.native_x};
  args.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(p.head_dim())));
  args.pair_layout = config.pair_layout == camera::PairLayout::kAdjacent ? kernels::CamPairLayout::kAdjacent
                                                                         : kernels::CamPairLayout::kSplitHalf;
  args.tables = {.n_cameras = tables.n_cameras,
                 .n_anchors = static_cast<int>(tables.rho.size()),
                 .camera_begin = tables.camera_begin.data(),
                 .rho = tables.rho.data(),
                 .token_frame = tables.token_frame.data(),
                 .ray_frame = tables.ray_frame.data(),
                 .native_cos = tables.native_cos.data(),
                 .native_sin = tables.native_sin.data(),
                 .trans_cos = tables.trans_cos.data(),
                 .trans_sin = tables.trans_sin.data(),
                 .arcs = tables.arcs.data(),
                 .eps_pole = static_cast<float>(config.pole.eps),
                 .pole_diagonal = {static_cast<float>(pole.x()), static_cast<float>(pole.y()), static_cast<float>(pole.z())},
                 .disparity_on = config.disparity_on,
                 .rotation_on = config.rotation_on,
                 .translation_on = config.translation_on,
                 .native_on = config.native_on};
  return args;
}

class KernelCameraAttention final : public CameraAttention {
 public:
  KernelCameraAttention(camera::EncodingTables tables, const CpuKernels& cpu) : tables_(std::move(tables)), cpu_(cpu) {}

  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const override {
    if (q.scalar_type() != at::kFloat || q.requires_grad() || k.requires_grad() || v.requires_grad()) {
      if (folded_ == nullptr) {
        folded_ = std::make_unique<FoldedCameraAttention>(tables_, at::kCPU, kExpandedBytesCpu);
      }
      return folded_->attend(q, k, v);
    }
    const at::Tensor queries = q.contiguous();
    const at::Tensor keys = k.contiguous();
    const at::Tensor values = v.contiguous();
    at::Tensor out = at::empty_like(queries);
    kernels::CamAttentionArgs args = args_of(tables_);
    TORCH_CHECK(q.size(1) == args.n_tokens && q.size(3) == args.partition.head_dim(),
                "camera attention over ",
                q.sizes(),
                " with tables for ",
                args.n_tokens,
                " tokens and heads of ",
                args.partition.head_dim());
    args.n_heads = static_cast<int>(q.size(2));
    for (std::int64_t sample = 0; sample < q.size(0); ++sample) {
      args.q = queries[sample].data_ptr<float>();
      args.k = keys[sample].data_ptr<float>();
      args.v = values[sample].data_ptr<float>();
      args.o = out[sample].data_ptr<float>();
      run(args);
    }
    return out;
  }

 private:
  void run(const kernels::CamAttentionArgs& args) const {
    const kernels::CamAttentionKernel& kernel = cpu_.table->cam_attention;
    const kernels::CanRun can_run = kernel.can_run(args);
    TORCH_CHECK(can_run, "camera attention kernel '", cpu_.table->name, "': ", can_run.reason);
    const std::size_t bytes = kernel.workspace_bytes(args, cpu_.threads->n_threads());
    if (!workspace_.defined() || static_cast<std::size_t>(workspace_.numel()) < bytes) {
      workspace_ = at::empty({static_cast<std::int64_t>(bytes)}, at::kByte);
    }
    kernel.run(args, workspace_.data_ptr(), *cpu_.threads);
  }

  camera::EncodingTables tables_;
  CpuKernels cpu_;
  mutable std::unique_ptr<FoldedCameraAttention> folded_;  // made when first needed
  mutable at::Tensor workspace_;
};

}  // namespace

std::unique_ptr<CameraAttention> make_camera_attention(camera::EncodingTables tables,
                                                       at::Device device,
                                                       const CpuKernels& cpu) {
  if (device.is_cpu()) {
    return std::make_unique<KernelCameraAttention>(std::move(tables), cpu);
  }
  return std::make_unique<FoldedCameraAttention>(tables, device, kExpandedBytesDevice);
}

}  // namespace merope::worker
