#include "worker/model/checkpoint_weights.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/torch/golden.h"
#include "tests/worker/weights/weight_files.h"

namespace merope::worker {
namespace {

using test::safetensors_bytes;
using test::TempFolder;
using testing::HasSubstr;

std::unique_ptr<const CheckpointWeights> opened(const TempFolder& folder) {
  auto weights = CheckpointWeights::open(folder.path());
  EXPECT_TRUE(weights) << weights.error().message;
  return *std::move(weights);
}

// Pads the header with spaces until the buffer begins `offset` bytes behind a multiple of 8.
std::string placed(std::string header, const std::string& buffer, std::size_t offset) {
  header.append((8 + offset - header.size() % 8) % 8, ' ');
  return safetensors_bytes(header, buffer);
}

TEST(CheckpointWeights, EveryDtypeOfACheckpointComesOutAsStored) {
  const std::string header =
      R"({"f64":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"i64":{"dtype":"I64","shape":[],"data_offsets":[8,16]},)"
      R"("f32":{"dtype":"F32","shape":[1,2],"data_offsets":[16,24]},"i32":{"dtype":"I32","shape":[1],"data_offsets":[24,28]},)"
      R"("bf16":{"dtype":"BF16","shape":[1],"data_offsets":[28,30]},"f16":{"dtype":"F16","shape":[1],"data_offsets":[30,32]},)"
      R"("u8":{"dtype":"U8","shape":[2],"data_offsets":[32,34]},"none":{"dtype":"F32","shape":[0,3],"data_offsets":[34,34]}})";
  std::string buffer;
  const auto put = [&](auto value) { buffer.append(reinterpret_cast<const char*>(&value), sizeof value); };
  put(2.5);
  put(std::int64_t{-7});
  put(1.5F);
  put(-0.25F);
  put(std::int32_t{-9});
  put(std::uint16_t{0x3FC0});  // 1.5
  put(std::uint16_t{0x3E00});  // 1.5
  put(std::uint8_t{3});
  put(std::uint8_t{255});
  const TempFolder folder;
  folder.write("model.safetensors", placed(header, buffer, 0));
  const auto weights = opened(folder);
  EXPECT_EQ(weights->names().size(), 8U);
  EXPECT_EQ(weights->find("f64")->item<double>(), 2.5);
  EXPECT_EQ(weights->find("i64")->dim(), 0);
  EXPECT_EQ(weights->find("i64")->item<std::int64_t>(), -7);
  EXPECT_TRUE(at::equal(*weights->find("f32"), at::tensor({1.5F, -0.25F}).view({1, 2})));
  EXPECT_EQ(weights->find("i32")->item<std::int32_t>(), -9);
  EXPECT_EQ(weights->find("bf16")->scalar_type(), at::kBFloat16);
  EXPECT_EQ(weights->find("bf16")->item<float>(), 1.5F);
  EXPECT_EQ(weights->find("f16")->scalar_type(), at::kHalf);
  EXPECT_EQ(weights->find("f16")->item<float>(), 1.5F);
  EXPECT_EQ(weights->find("u8")->sum().item<std::int64_t>(), 258);
  EXPECT_EQ(weights->find("none")->sizes(), at::IntArrayRef({0, 3}));
  EXPECT_FALSE(weights->find("absent"));
}

TEST(CheckpointWeights, AlignedTensorsAreViewsAndUnalignedOnesCopies) {
  const std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::string buffer(8, '\0');
  const float values[2] = {1.25F, -8.0F};
  std::memcpy(buffer.data(), values, sizeof values);
  for (const std::size_t offset : {0U, 1U, 4U}) {
    const TempFolder folder;
    folder.write("model.safetensors", placed(header, buffer, offset));
    const auto weights = opened(folder);
    const at::Tensor w = *weights->find("w");
    EXPECT_TRUE(at::equal(w, at::tensor({1.25F, -8.0F})));
    EXPECT_EQ(w.data_ptr() == weights->find("w")->data_ptr(), offset % 4 == 0) << "offset " << offset;
  }
}

TEST(CheckpointWeights, AViewOutlivesTheSource) {
  at::Tensor w;
  {
    const TempFolder folder;
    folder.write("model.safetensors", placed(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "\x2A", 0));
    w = *opened(folder)->find("w");
  }
  EXPECT_EQ(w.item<int>(), 42);
}

TEST(CheckpointWeights, AReaderNamesFileAndDtypeOfATensorNoModelUses) {
  const TempFolder folder;
  folder.write("model.safetensors", placed(R"({"w":{"dtype":"F8_E8M0","shape":[1],"data_offsets":[0,1]}})", "x", 0));
  const auto weights = opened(folder);
  WeightReader reader(*weights, at::kCPU, at::kFloat);
  reader.tensor("w", {1});
  reader.tensor("absent", {1});
  const Status status = reader.finish();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("w has dtype F8_E8M0"));
  EXPECT_THAT(status.error().message, HasSubstr("model.safetensors"));
  EXPECT_THAT(status.error().message, HasSubstr("absent is missing in " + folder.path().string()));
}

// 8-bit floats by their bits: e4m3fn 0x38 = 1, 0x40 = 2, 0x44 = 3, 0xB8 = -1, 0x7F = NaN; e5m2 0x3C = 1.
std::string fp8_file(const std::string& scales, const std::string& values, std::size_t n_factors) {
  const std::string weight = R"("layer.weight":{"dtype":"F8_E4M3","shape":[2,2],"data_offsets":[0,4]})";
  std::string buffer = values;
  std::string header = "{" + weight;
  if (n_factors > 0) {
    header += R"(,"layer.)" + scales + R"(":{"dtype":"F32","shape":[)" + std::to_string(n_factors) +
              R"(],"data_offsets":[4,)" + std::to_string(4 + 4 * n_factors) + "]}";
    for (const float factor : {0.5F, 4.0F, 1.0F}) {
      buffer.append(reinterpret_cast<const char*>(&factor), sizeof factor);
    }
    buffer.resize(4 + 4 * n_factors);
  }
  return placed(header + "}", buffer, 0);
}

TEST(CheckpointWeights, EightBitWeightsAreMultipliedWithTheirScale) {
  const std::string values = "\x38\x40\x44\xB8";
  const at::Tensor plain = at::tensor({1.0F, 2.0F, 3.0F, -1.0F}).view({2, 2});
  const struct {
    std::string scales;
    std::size_t n_factors;
    at::Tensor factors;
  } cases[] = {{"scale_weight", 1, at::tensor({0.5F})},
               {"weight_scale", 1, at::tensor({0.5F})},
               {"weight_scale", 2, at::tensor({0.5F, 4.0F}).view({2, 1})},
               {"", 0, at::tensor({1.0F})}};
  for (const auto& c : cases) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      const TempFolder folder;
      folder.write("model.safetensors", fp8_file(c.scales, values, c.n_factors));
      const auto weights = opened(folder);
      WeightReader reader(*weights, at::kCPU, dtype);
      EXPECT_TRUE(at::equal(reader.tensor("layer.weight", {2, 2}), (plain * c.factors).to(dtype))) << c.scales;
      const Status status = reader.finish();
      EXPECT_TRUE(status) << status.error().message;
    }
  }
}

TEST(CheckpointWeights, ManyRowsOfEightBitWeightsAreAllScaled) {
  // More rows than are converted at a time, each with its own factor.
  const std::int64_t n = 600;
  const std::string header = R"({"w.weight":{"dtype":"F8_E5M2","shape":[600,1],"data_offsets":[0,600]},)"
                             R"("w.scale_weight":{"dtype":"F32","shape":[600,1],"data_offsets":[600,3000]},)"
                             R"("w.scale_input":{"dtype":"F32","shape":[],"data_offsets":[3000,3004]},)"
                             R"("scaled_fp8":{"dtype":"F8_E5M2","shape":[0],"data_offsets":[3004,3004]}})";
  std::string buffer(n, '\x3C');
  for (std::int64_t i = 0; i <= n; ++i) {
    const auto factor = static_cast<float>(i);
    buffer.append(reinterpret_cast<const char*>(&factor), sizeof factor);
  }
  const TempFolder folder;
  folder.write("model.safetensors", placed(header, buffer, 0));
  const auto weights = opened(folder);
  WeightReader reader(*weights, at::kCPU, at::kFloat);
  EXPECT_TRUE(at::equal(reader.tensor("w.weight", {n, 1}), at::arange(n, at::kFloat).view({n, 1})));
  const Status status = reader.finish();
  EXPECT_TRUE(status) << status.error().message;
}

TEST(CheckpointWeights, AMatrixWithoutAScaleAmongScaledOnesIsRefused) {
  const TempFolder folder;
  folder.write("model.safetensors",
               placed(R"({"a.weight":{"dtype":"F8_E4M3","shape":[1,1],"data_offsets":[0,1]},)"
                      R"("scaled_fp8":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[1,3]},)"
                      R"("shared.weight":{"dtype":"F8_E4M3","shape":[1,1],"data_offsets":[3,4]},)"
                      R"("n.weight":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[4,5]}})",
                      "\x38\x38\x38\x38\x38",
                      0));
  const auto weights = opened(folder);
  EXPECT_THROW((void)weights->find("a.weight"), std::runtime_error);
  EXPECT_TRUE(weights->find("shared.weight"));
  EXPECT_TRUE(weights->find("n.weight"));
}

TEST(CheckpointWeights, BrokenEightBitWeightsAreNamed) {
  const struct {
    std::string values;
    std::size_t n_factors;
    const char* message;
  } cases[] = {{"\x38\x40\x7F\x38", 1, "layer.weight holds NaN"},
               {"\x38\x40\x44\x38", 3, "has 3 factors in layer.weight_scale"}};
  for (const auto& c : cases) {
    const TempFolder folder;
    folder.write("model.safetensors", fp8_file("weight_scale", c.values, c.n_factors));
    const auto weights = opened(folder);
    WeightReader reader(*weights, at::kCPU, at::kFloat);
    reader.tensor("layer.weight", {2, 2});
    const Status status = reader.finish();
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr(c.message));
    EXPECT_THAT(status.error().message, HasSubstr("model.safetensors"));
  }
}

TEST(CheckpointWeights, TheShardOfEachTensorIsItsOrigin) {
  const TempFolder folder;
  folder.write("m-1.safetensors", placed(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1", 0));
  folder.write("m-2.safetensors", placed(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "2", 0));
  folder.write("m.safetensors.index.json", R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
  const auto weights = opened(folder);
  EXPECT_THAT(weights->origin("b"), testing::EndsWith("m-2.safetensors"));
  EXPECT_EQ(weights->find("b")->item<int>(), '2');
}

TEST(CheckpointWeights, ABrokenFileIsAnError) {
  const TempFolder folder;
  folder.write("model.safetensors", "");
  const auto weights = CheckpointWeights::open(folder.path());
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().code, ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace merope::worker
