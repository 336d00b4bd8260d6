// What loading takes: no second copy of the weights, whatever they are stored as.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/worker/weights/weight_files.h"
#include "worker/model/checkpoint_weights.h"

namespace merope::worker {
namespace {

constexpr std::int64_t kLayers = 40;
constexpr std::int64_t kRows = 512;
constexpr std::int64_t kColumns = 4096;

// A line of /proc/self/status in bytes: VmHWM, the largest memory so far, or VmRSS, that of now.
double memory(const std::string& which) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(which + ":")) {
      return std::stod(line.substr(which.size() + 1)) * 1024;
    }
  }
  return 0;
}

// The kernel forgets the peak. False where that is not allowed.
bool reset_peak() {
  ::malloc_trim(0);  // what earlier tests freed would be taken again unseen
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good() && memory("VmHWM") <= memory("VmRSS") * 1.02;
}

// kLayers matrices of random bits that are finite numbers in any of the dtypes.
void write_layers(const std::filesystem::path& path, const std::string& dtype, std::int64_t element_bytes) {
  const std::int64_t layer_bytes = kRows * kColumns * element_bytes;
  std::string header;
  for (std::int64_t i = 0; i < kLayers; ++i) {
    header += (i == 0 ? "{" : ",") + std::string("\"layer") + std::to_string(i) + ".weight\":{\"dtype\":\"" + dtype +
              "\",\"shape\":[" + std::to_string(kRows) + "," + std::to_string(kColumns) + "],\"data_offsets\":[" +
              std::to_string(i * layer_bytes) + "," + std::to_string((i + 1) * layer_bytes) + "]}";
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  std::ofstream file(path, std::ios::binary);
  file << test::length_bytes(header.size()) << header;
  std::vector<std::uint32_t> words(static_cast<std::size_t>(layer_bytes) / 4);
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < kLayers; ++i) {
    for (std::uint32_t& word : words) {
      state = state * 1664525U + 1013904223U;
      word = state & 0x3B3B3B3BU;
    }
    file.write(reinterpret_cast<const char*>(words.data()), layer_bytes);
  }
}

TEST(LoadingMemory, StaysWithinATenthAboveTheWeightsKept) {
  if (!reset_peak()) {
    GTEST_SKIP() << "the peak of the memory can not be reset here (/proc/self/clear_refs)";
  }
  const struct {
    const char* dtype;
    std::int64_t element_bytes;
    at::ScalarType kept;
  } cases[] = {{"F32", 4, at::kFloat},
               {"BF16", 2, at::kBFloat16},
               {"BF16", 2, at::kFloat},
               {"F32", 4, at::kBFloat16},
               {"F8_E4M3", 1, at::kBFloat16}};
  for (const auto& c : cases) {
    const test::TempFolder folder;
    write_layers(folder.path() / "model.safetensors", c.dtype, c.element_bytes);
    ASSERT_TRUE(reset_peak());
    const double before = memory("VmRSS");
    std::vector<at::Tensor> kept;
    double bytes = 0;
    {
      const auto weights = CheckpointWeights::open(folder.path());
      ASSERT_TRUE(weights);
      WeightReader reader(**weights, at::kCPU, c.kept);
      for (std::int64_t i = 0; i < kLayers; ++i) {
        kept.push_back(reader.tensor("layer" + std::to_string(i) + ".weight", {kRows, kColumns}));
        bytes += static_cast<double>(kept.back().nbytes());
      }
      ASSERT_TRUE(reader.finish());
    }
    const double ratio = (memory("VmHWM") - before) / bytes;
    RecordProperty(std::string(c.dtype) + "_to_" + at::toString(c.kept), std::to_string(ratio));
    std::printf("%s kept as %s: peak %.3f of %.0f MB\n", c.dtype, at::toString(c.kept), ratio, bytes / 1e6);
    EXPECT_LE(ratio, 1.1) << c.dtype << " kept as " << c.kept;
  }
}

TEST(LoadingMemory, ACheckAloneKeepsNothing) {
  if (!reset_peak()) {
    GTEST_SKIP() << "the peak of the memory can not be reset here (/proc/self/clear_refs)";
  }
  const test::TempFolder folder;
  write_layers(folder.path() / "model.safetensors", "BF16", 2);
  ASSERT_TRUE(reset_peak());
  const double before = memory("VmRSS");
  const auto weights = CheckpointWeights::open(folder.path());
  WeightReader reader(**weights, at::kMeta, at::kFloat);
  for (std::int64_t i = 0; i < kLayers; ++i) {
    EXPECT_TRUE(reader.tensor("layer" + std::to_string(i) + ".weight", {kRows, kColumns}).is_meta());
  }
  EXPECT_TRUE(reader.finish());
  EXPECT_LE(memory("VmHWM") - before, 0.1 * kLayers * kRows * kColumns * 2);
}

}  // namespace
}  // namespace merope::worker
