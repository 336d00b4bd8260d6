#include "worker/weights/shard_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/weights/weight_files.h"

namespace merope::worker {
namespace {

using test::safetensors_bytes;
using test::TempFolder;
using testing::HasSubstr;

// A file with one tensor of one byte.
std::string holding(const std::string& name, char byte = 'x') {
  return safetensors_bytes("{\"" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", std::string(1, byte));
}

void write_index(const TempFolder& folder, const std::string& weight_map) {
  folder.write("model.safetensors.index.json", R"({"metadata":{"total_size":2},"weight_map":)" + weight_map + "}");
}

Error failure(const TempFolder& folder) {
  const Result<ComponentFiles> component = ComponentFiles::open(folder.path());
  return component ? Error{ErrorCode::kUnknown, "was accepted"} : component.error();
}

TEST(ComponentFiles, OpensASingleFileOfAnyStem) {
  for (const char* stem : {"model", "diffusion_pytorch_model"}) {
    const TempFolder folder;
    folder.write("config.json", "{}");
    folder.write(std::string(stem) + ".safetensors", holding("a"));
    const Result<ComponentFiles> component = ComponentFiles::open(folder.path());
    ASSERT_TRUE(component) << component.error().message;
    EXPECT_EQ(component->tensors().size(), 1U);
  }
}

TEST(ComponentFiles, JoinsTheShardsOfAnIndex) {
  const TempFolder folder;
  folder.write("model-00001-of-00002.safetensors", holding("a", '1'));
  folder.write("model-00002-of-00002.safetensors", holding("b", '2'));
  write_index(folder, R"({"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"})");
  const Result<ComponentFiles> component = ComponentFiles::open(folder.path());
  ASSERT_TRUE(component) << component.error().message;
  ASSERT_EQ(component->tensors().size(), 2U);
  const ComponentFiles::Place b = component->tensors().at("b");
  EXPECT_EQ(b.file->path().filename(), "model-00002-of-00002.safetensors");
  EXPECT_EQ(b.file->bytes(*b.tensor).front(), std::byte{'2'});
}

TEST(ComponentFiles, AWrongTotalSizeIsNotAnError) {
  const TempFolder folder;
  folder.write("m.safetensors", holding("a"));
  folder.write("m.safetensors.index.json", R"({"metadata":{"total_size":99},"weight_map":{"a":"m.safetensors"}})");
  EXPECT_TRUE(ComponentFiles::open(folder.path()));
}

TEST(ComponentFiles, TensorsThatTheIndexForgotAreStillSeen) {
  const TempFolder folder;
  folder.write("m-1.safetensors",
               safetensors_bytes(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                 R"("extra":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                 "12"));
  write_index(folder, R"({"a":"m-1.safetensors"})");
  const Result<ComponentFiles> component = ComponentFiles::open(folder.path());
  ASSERT_TRUE(component) << component.error().message;
  EXPECT_TRUE(component->tensors().contains("extra"));
}

TEST(ComponentFiles, NamesTheMissingShard) {
  const TempFolder folder;
  folder.write("m-1.safetensors", holding("a"));
  write_index(folder, R"({"a":"m-1.safetensors","b":"m-2.safetensors"})");
  const Error error = failure(folder);
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("the shard m-2.safetensors is missing"));
}

TEST(ComponentFiles, NamesTheBrokenShard) {
  const TempFolder folder;
  folder.write("m-1.safetensors", holding("a").substr(0, 20));
  write_index(folder, R"({"a":"m-1.safetensors"})");
  const Error error = failure(folder);
  EXPECT_EQ(error.code, ErrorCode::kDataLoss);
  EXPECT_THAT(error.message, HasSubstr("m-1.safetensors"));
}

TEST(ComponentFiles, NamesTheTensorThatIsListedAndAbsent) {
  const TempFolder folder;
  folder.write("m-1.safetensors", holding("a"));
  folder.write("m-2.safetensors", holding("c"));
  write_index(folder, R"({"a":"m-1.safetensors","b":"m-2.safetensors"})");
  EXPECT_THAT(failure(folder).message, HasSubstr("lists b in m-2.safetensors, which does not hold it"));
}

TEST(ComponentFiles, NamesTheTensorThatIsListedInTheWrongShard) {
  const TempFolder folder;
  folder.write("m-1.safetensors", holding("a"));
  folder.write("m-2.safetensors", holding("b"));
  write_index(folder, R"({"a":"m-2.safetensors","b":"m-1.safetensors"})");
  EXPECT_THAT(failure(folder).message, HasSubstr("lists a in m-2.safetensors, which does not hold it"));
}

TEST(ComponentFiles, NamesTheTensorThatTwoShardsHold) {
  const TempFolder folder;
  folder.write("m-1.safetensors", holding("a"));
  folder.write("m-2.safetensors",
               safetensors_bytes(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                 R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                 "12"));
  write_index(folder, R"({"a":"m-1.safetensors","b":"m-2.safetensors"})");
  EXPECT_THAT(failure(folder).message, testing::AllOf(HasSubstr("a is both in"), HasSubstr("m-1"), HasSubstr("m-2")));
}

TEST(ComponentFiles, AnIndexCannotLeadOutOfItsFolder) {
  for (const char* shard : {"../m.safetensors", "/etc/m.safetensors", "sub/m.safetensors", "..", "m.bin", ""}) {
    const TempFolder folder;
    write_index(folder, R"({"a":")" + std::string(shard) + "\"}");
    const Error error = failure(folder);
    EXPECT_EQ(error.code, ErrorCode::kDataLoss) << shard;
    EXPECT_THAT(error.message, HasSubstr("weight_map sends a to")) << shard;
  }
}

TEST(ComponentFiles, RefusesAnIndexWithoutAMap) {
  for (const char* index : {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})", "{\"weight_map\""}) {
    const TempFolder folder;
    folder.write("model.safetensors.index.json", index);
    const Error error = failure(folder);
    EXPECT_EQ(error.code, ErrorCode::kDataLoss) << index;
    EXPECT_THAT(error.message, HasSubstr("model.safetensors.index.json")) << index;
  }
}

TEST(ComponentFiles, AFolderWithoutWeightsIsNotFound) {
  const TempFolder folder;
  EXPECT_EQ(failure(folder).code, ErrorCode::kNotFound);
  EXPECT_THAT(failure(folder).message, HasSubstr("holds no *.safetensors file"));
  EXPECT_EQ(ComponentFiles::open(folder.path() / "nowhere").error().code, ErrorCode::kNotFound);
}

TEST(ComponentFiles, DoesNotGuessBetweenCandidates) {
  const TempFolder folder;
  folder.write("m.safetensors", holding("a"));
  folder.write("m.fp16.safetensors", holding("a"));
  EXPECT_EQ(failure(folder).code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(failure(folder).message, HasSubstr("m.fp16.safetensors, m.safetensors"));
}

}  // namespace
}  // namespace merope::worker
