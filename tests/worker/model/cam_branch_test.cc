#include "worker/model/cam_branch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/camera/dense_operator.h"
#include "core/camera/encoding/encodings.h"
#include "core/camera/min_rot.h"
#include "core/camera/ray_grid.h"
#include "kernels/dispatch.h"
#include "tests/support/torch/dit_shapes.h"
#include "tests/support/torch/golden.h"
#include "tests/support/torch/hash_weights.h"
#include "worker/model/cam_attention_folded.h"
#include "worker/model/wan_dit.h"

namespace merope::worker {
namespace {

using camera::Mat3;
using camera::TrajectoryFrame;
using camera::Vec3;

constexpr std::size_t kOneCameraAtATime = 1;
constexpr std::size_t kAllCameras = std::size_t{1} << 30U;

Mat3 turned(double yaw, double pitch) {
  return (Eigen::AngleAxisd(yaw, Vec3::UnitY()) * Eigen::AngleAxisd(pitch, Vec3::UnitX())).toRotationMatrix();
}

// Latent cameras of a car that drives forward and bends to one side.
std::vector<TrajectoryFrame> drive(int n_cameras, double bend, const Vec3& origin = Vec3::Zero()) {
  std::vector<TrajectoryFrame> cameras;
  for (int i = 0; i < n_cameras; ++i) {
    TrajectoryFrame frame;
    frame.c2w.rotation = turned(bend * i, 0.02 * i);
    frame.c2w.centre = origin + Vec3(0.3 * bend * i * i, 0.05 * i, 2.5 * i);
    frame.time_s = 0.4 * i;
    frame.lens.width = 96;
    frame.lens.height = 64;
    frame.lens.model = camera::pinhole_from_fov(96, 64, 1.2);
    cameras.push_back(frame);
  }
  return cameras;
}

camera::EncodingTables tables_of(const std::vector<TrajectoryFrame>& cameras,
                                 const camera::TokenGrid& grid,
                                 const camera::EncodingConfig& config = {}) {
  Result<camera::EncodingTables> tables = camera::prepare_encoding("merope", config, cameras, grid);
  EXPECT_TRUE(tables) << (tables ? "" : tables.error().message);
  return *std::move(tables);
}

CpuKernels scalar_kernels() {
  static kernels::SerialFor serial;
  return {kernels::choose_cpu_backend("scalar").table, &serial};
}

struct Qkv {
  at::Tensor q, k, v;
};

Qkv random_qkv(at::IntArrayRef shape) {
  return {test::hash_input(31, shape) * 2, test::hash_input(32, shape) * 2, test::hash_input(33, shape)};
}

// Eq. 1 with the operator as a matrix, in double, for one sample: [1, S, heads, D].
at::Tensor dense_attention(const Qkv& x,
                           const std::vector<TrajectoryFrame>& cameras,
                           const camera::TokenGrid& grid,
                           const camera::EncodingConfig& config) {
  std::vector<camera::DenseToken> tokens;
  for (std::size_t i = 0; i < cameras.size(); ++i) {
    const camera::RayGrid rays = camera::ray_grid(cameras[i].lens, grid, config.token_centre, config.invalid_ray_policy);
    for (int t = 0; t < grid.size(); ++t) {
      tokens.push_back(
          {cameras[i].c2w,
           rays.rays_c[static_cast<std::size_t>(t)],
           {static_cast<double>(i), static_cast<double>(t % grid.columns), static_cast<double>(t / grid.columns)}});
    }
  }
  const std::int64_t n = x.q.size(1);
  const std::int64_t d = x.q.size(3);
  at::Tensor out = at::zeros(x.q.sizes(), at::kDouble);
  for (std::int64_t a = 0; a < n; ++a) {
    std::vector<at::Tensor> keys;
    std::vector<at::Tensor> values;
    for (std::int64_t b = 0; b < n; ++b) {
      const Eigen::MatrixXd u =
          camera::dense_operator(config, tokens[static_cast<std::size_t>(a)], tokens[static_cast<std::size_t>(b)]);
      // Eigen is column-major.
      const at::Tensor matrix = at::from_blob(const_cast<double*>(u.data()), {d, d}, at::kDouble).t();
      keys.push_back(at::matmul(x.k[0][b].to(at::kDouble), matrix.t()));
      values.push_back(at::matmul(x.v[0][b].to(at::kDouble), matrix.t()));
    }
    const at::Tensor query = x.q[0][a].to(at::kDouble);                                               // [heads, D]
    const at::Tensor scores = (at::stack(keys) * query).sum(-1) / std::sqrt(static_cast<double>(d));  // [n, heads]
    out[0][a] = (at::softmax(scores, 0).unsqueeze(-1) * at::stack(values)).sum(0);
  }
  return out;
}

struct EncodingCase {
  const char* name;
  camera::EncodingConfig config;
};

std::vector<EncodingCase> encoding_cases() {
  std::vector<EncodingCase> cases = {{"default", {}}, {"layouts", {}}, {"parts_off", {}}};
  cases[1].config.pair_layout = camera::PairLayout::kSplitHalf;
  cases[1].config.native_order = camera::NativeOrder::kTimeYX;
  cases[1].config.partition = {36, 36, 24, 16, 12, 4};
  cases[2].config.disparity_on = false;
  cases[2].config.native_on = false;
  return cases;
}

TEST(CameraAttention, FoldedFormIsTheDenseOperator) {
  const camera::TokenGrid grid{2, 3};
  const std::vector<TrajectoryFrame> cameras = drive(3, 0.1);
  const Qkv x = random_qkv({1, 18, 2, 128});
  for (const EncodingCase& c : encoding_cases()) {
    const at::Tensor expected = dense_attention(x, cameras, grid, c.config);
    const camera::EncodingTables tables = tables_of(cameras, grid, c.config);
    for (const std::size_t bytes : {kOneCameraAtATime, kAllCameras}) {
      const FoldedCameraAttention folded(tables, at::kCPU, bytes);
      EXPECT_TRUE(test::near(folded.attend(x.q, x.k, x.v), expected, 2e-5)) << c.name << ", " << bytes;
    }
  }
}

TEST(CameraAttention, KernelIsTheFoldedForm) {
  const camera::TokenGrid grid{3, 4};
  for (const EncodingCase& c : encoding_cases()) {
    // No bend: keys behind the query camera have an anchor exactly on the optical axis, seen from behind.
    for (const double bend : {0.0, 0.07}) {
      const camera::EncodingTables tables = tables_of(drive(4, bend), grid, c.config);
      const Qkv x = random_qkv({2, 48, 3, 128});
      const at::Tensor folded = FoldedCameraAttention(tables, at::kCPU, kAllCameras).attend(x.q, x.k, x.v);
      const at::Tensor kernel = make_camera_attention(tables, at::kCPU, scalar_kernels())->attend(x.q, x.k, x.v);
      EXPECT_TRUE(test::near(kernel, folded, 2e-5)) << c.name << ", bend " << bend;
    }
  }
}

// The tables without one token, as of a camera that has fewer of them.
camera::EncodingTables without_token(camera::EncodingTables tables, int token) {
  const auto drop = [&](std::vector<float>& values, int width, int row) {
    values.erase(values.begin() + row * width, values.begin() + (row + 1) * width);
  };
  drop(tables.token_frame, 9, token);
  drop(tables.ray_frame, 9, token);
  const int n_native = tables.config.partition.native() / 2;
  drop(tables.native_cos, n_native, token);
  drop(tables.native_sin, n_native, token);
  for (int query_camera = tables.n_cameras - 1; query_camera >= 0; --query_camera) {
    drop(tables.arcs, camera::EncodingTables::kArcSize, query_camera * tables.n_tokens + token);
  }
  for (int& begin : tables.camera_begin) {
    begin -= begin > token ? 1 : 0;
  }
  --tables.n_tokens;
  return tables;
}

TEST(CameraAttention, CamerasMayHaveDifferentNumbersOfTokens) {
  const camera::EncodingTables tables = without_token(without_token(tables_of(drive(4, 0.07), {2, 3}), 8), 8);
  ASSERT_EQ(tables.camera_begin, (std::vector<int>{0, 6, 10, 16, 22}));
  const Qkv x = random_qkv({1, 22, 2, 128});
  const at::Tensor kernel = make_camera_attention(tables, at::kCPU, scalar_kernels())->attend(x.q, x.k, x.v);
  EXPECT_TRUE(test::near(FoldedCameraAttention(tables, at::kCPU, kAllCameras).attend(x.q, x.k, x.v), kernel, 2e-5));
}

TEST(CameraAttention, GradientsTakeTheDifferentiableWay) {
  const camera::EncodingTables tables = tables_of(drive(2, 0.1), {2, 2});
  const auto attention = make_camera_attention(tables, at::kCPU, scalar_kernels());
  Qkv x = random_qkv({1, 8, 1, 128});
  const at::Tensor without = attention->attend(x.q, x.k, x.v);
  x.k.requires_grad_();
  const at::Tensor with = attention->attend(x.q, x.k, x.v);
  EXPECT_TRUE(with.requires_grad());
  EXPECT_TRUE(test::near(with.detach(), without, 2e-5));
  // Central difference of one entry against the gradient.
  const at::Tensor weights = test::hash_input(34, {1, 8, 1, 128});
  (with * weights).sum().backward();
  const auto loss = [&](double step) {
    at::Tensor moved = x.k.detach().clone();
    moved[0][5][0][40] += step;
    return (attention->attend(x.q, moved, x.v).to(at::kDouble) * weights.to(at::kDouble)).sum().item<double>();
  };
  EXPECT_NEAR(x.k.grad()[0][5][0][40].item<double>(), (loss(0.05) - loss(-0.05)) / 0.1, 2e-4);
}

TEST(CameraAttention, RefusesTokensThatAreNotItsTables) {
  const auto attention = make_camera_attention(tables_of(drive(2, 0.1), {2, 2}), at::kCPU, scalar_kernels());
  const Qkv x = random_qkv({1, 9, 1, 128});
  EXPECT_THROW(attention->attend(x.q, x.k, x.v), c10::Error);
}

// A tiny transformer of 18 tokens with a camera branch in block 1, and one like it without.
WanConfig config_with_camera() {
  WanConfig config = test::dit_config_d2();
  config.camera = CameraBranchConfig{};
  config.camera->n_heads = 2;
  config.camera->injection_blocks = {1};
  return config;
}

std::map<std::string, at::Tensor> weights_with_camera() {
  auto weights = test::hash_weights(test::dit_shapes(test::dit_config_d2()));
  std::uint64_t k = 40;
  for (const auto& [name, shape] : test::dit_shapes(config_with_camera())) {
    if (!weights.contains(name)) {
      weights[name] = test::hash_input(k++, shape) * 0.3;
    }
  }
  return weights;
}

WanDit load(const WanConfig& config, const std::map<std::string, at::Tensor>& weights, at::ScalarType dtype = at::kFloat) {
  Result<WanDit> model = WanDit::load(config, test::MapWeightSource(weights), at::kCPU, dtype);
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  return *std::move(model);
}

at::Tensor velocity(const WanDit& model,
                    const CameraAttention* camera,
                    std::int64_t batch = 1,
                    std::int64_t first_text = 0) {
  const at::Tensor latents = test::hash_input(0, {1, 48, 3, 4, 6}).expand({batch, -1, -1, -1, -1});
  const TextContext text = model.encode_text(test::hash_input(1, {2, 16, 32}).narrow(0, first_text, batch), 16);
  const NoiseLevel noise{model.embed_timesteps(at::full({1}, 700.0, at::kFloat)), {}};
  return model.forward(latents, noise, text, model.rope(token_grid(latents)), camera);
}

std::unique_ptr<CameraAttention> cameras_for_dit(double bend, const Vec3& origin = Vec3::Zero()) {
  return make_camera_attention(tables_of(drive(3, bend, origin), {2, 3}), at::kCPU, scalar_kernels());
}

TEST(CamBranch, FreshBranchLeavesTheModelBitwiseAsItIs) {
  auto weights = weights_with_camera();
  for (const char* name : {"blocks.1.cam_attn.to_out.weight", "blocks.1.cam_attn.to_out.bias"}) {
    weights[name] = at::zeros_like(weights[name]);
  }
  const auto camera = cameras_for_dit(0.1);
  const at::Tensor with = velocity(load(config_with_camera(), weights), camera.get());
  const at::Tensor without =
      velocity(load(test::dit_config_d2(), test::hash_weights(test::dit_shapes(test::dit_config_d2()))), nullptr);
  EXPECT_TRUE(at::equal(with, without));
}

TEST(CamBranch, TheCameraPathChangesTheVelocity) {
  const WanDit model = load(config_with_camera(), weights_with_camera());
  const at::Tensor straight = velocity(model, cameras_for_dit(0).get());
  const at::Tensor bent = velocity(model, cameras_for_dit(0.1).get());
  EXPECT_FALSE(test::near(straight, bent, 1e-3));
  EXPECT_FALSE(test::near(straight, velocity(model, nullptr), 1e-3));
}

TEST(CamBranch, OutputIsAddedInsideTheGate) {
  const WanDit model = load(config_with_camera(), weights_with_camera());
  std::map<std::string, at::Tensor> seen;
  const ProbeFunction remember = [&](const std::string& name, const at::Tensor& value) { seen[name] = value; };
  const at::Tensor latents = test::hash_input(0, {1, 48, 3, 4, 6});
  const TextContext text = model.encode_text(test::hash_input(1, {1, 16, 32}), 16);
  const auto camera = cameras_for_dit(0.1);
  const Probe probe(remember);
  const NoiseLevel noise{model.embed_timesteps(at::full({1}, 700.0, at::kFloat), probe), {}};
  model.forward(latents, noise, text, model.rope(token_grid(latents)), camera.get(), probe);

  // Block 1 by hand up to its cross-attention.
  const auto weights = weights_with_camera();
  const at::Tensor projection = seen["time.projection"].view({6, 32});
  const at::Tensor gate = weights.at("blocks.1.scale_shift_table")[0][2] + projection[2];
  const at::Tensor after_attention =
      seen["blocks.0.out"] + (seen["blocks.1.attn1.out"] + seen["blocks.1.cam_attn.out"]) * gate;
  const at::Tensor modulated = at::layer_norm(after_attention + seen["blocks.1.attn2.out"], {32}) *
                                   (1 + weights.at("blocks.1.scale_shift_table")[0][4] + projection[4]) +
                               weights.at("blocks.1.scale_shift_table")[0][3] + projection[3];
  const at::Tensor hidden = at::gelu(
      at::linear(modulated, weights.at("blocks.1.ffn.net.0.proj.weight"), weights.at("blocks.1.ffn.net.0.proj.bias")),
      "tanh");
  EXPECT_TRUE(test::near(seen["blocks.1.ffn"],
                         at::linear(hidden, weights.at("blocks.1.ffn.net.2.weight"), weights.at("blocks.1.ffn.net.2.bias")),
                         1e-4));
}

TEST(CamBranch, WorldOffsetsOfAMapDoNotMatter) {
  const WanDit model = load(config_with_camera(), weights_with_camera());
  const at::Tensor here = velocity(model, cameras_for_dit(0.1).get());
  const at::Tensor there = velocity(model, cameras_for_dit(0.1, Vec3(4e5, -3e5, 12)).get());
  EXPECT_TRUE(test::near(there, here, 1e-5));
}

TEST(CamBranch, BatchOfTwoEqualsTwoRuns) {
  const WanDit model = load(config_with_camera(), weights_with_camera());
  const auto camera = cameras_for_dit(0.1);
  const at::Tensor both = velocity(model, camera.get(), 2);
  EXPECT_TRUE(test::near(both.narrow(0, 0, 1), velocity(model, camera.get(), 1, 0), 2e-5));
  EXPECT_TRUE(test::near(both.narrow(0, 1, 1), velocity(model, camera.get(), 1, 1), 2e-5));
}

TEST(CamBranch, Bf16StaysWithinItsRoundingOfFp32) {
  const auto camera = cameras_for_dit(0.1);
  const at::Tensor wide = velocity(load(config_with_camera(), weights_with_camera()), camera.get()).to(at::kDouble);
  const at::Tensor narrow =
      velocity(load(config_with_camera(), weights_with_camera(), at::kBFloat16), camera.get()).to(at::kDouble);
  EXPECT_LT(((narrow - wide).square().mean() / wide.square().mean()).sqrt().item<double>(), 0.02);
}

TEST(CamBranch, CountsThePublishedNumberOfParameters) {
  CameraBranchConfig config;
  const struct { std::int64_t n_heads, per_block; } expected[] = {{12, 18882048}, {6, 9442560}, {3, 4722816}};
  for (const auto& e : expected) {
    config.n_heads = e.n_heads;
    EXPECT_EQ(cam_branch_parameters(3072, config), e.per_block);
  }
  config.n_heads = 6;
  EXPECT_EQ(4999787712 + 15 * cam_branch_parameters(3072, config), 5141426112);
  // The formula counts what a branch reads.
  std::int64_t read = 0;
  for (const auto& [name, tensor] : weights_with_camera()) {
    read += name.starts_with("blocks.1.cam_attn.") ? tensor.numel() : 0;
  }
  EXPECT_EQ(read, cam_branch_parameters(32, *config_with_camera().camera));
}

}  // namespace
}  // namespace merope::worker
