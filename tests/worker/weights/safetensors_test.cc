#include "worker/weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/weights/weight_files.h"

namespace merope::worker {
namespace {

using test::length_bytes;
using test::safetensors_bytes;
using testing::HasSubstr;

// Opens a file of these bytes and gives back what the reader complains about; "" when it accepts the file.
std::string complaint(const std::string& bytes) {
  const test::TempFolder folder;
  const std::filesystem::path path = folder.write("weights.safetensors", bytes);
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (file) {
    return "";
  }
  EXPECT_EQ(file.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(file.error().message, HasSubstr(path.string()));
  return file.error().message;
}

std::string one_tensor(const std::string& record, std::size_t buffer_bytes) {
  return safetensors_bytes("{\"w\":" + record + "}", std::string(buffer_bytes, '\0'));
}

TEST(Safetensors, ReadsWhatWasWritten) {
  const test::TempFolder folder;
  const std::string header = R"({"__metadata__":{"format":"pt"},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},)"
                             R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}   )";
  const auto path = folder.write("w.safetensors", safetensors_bytes(header, "01234567xyz"));
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata().at("format"), "pt");
  ASSERT_EQ(file->tensors().size(), 2U);
  const StoredTensor& b = file->tensors().at("b");
  EXPECT_EQ(b.dtype, Dtype::kU8);
  EXPECT_EQ(b.shape, std::vector<std::int64_t>{3});
  const std::span<const std::byte> bytes = file->bytes(b);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "xyz");
  EXPECT_EQ(file->bytes(file->tensors().at("a")).size(), 8U);
}

TEST(Safetensors, AMissingFileIsNotFound) {
  const Result<SafetensorsFile> file = SafetensorsFile::open("/nonexistent/w.safetensors");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(file.error().message, HasSubstr("/nonexistent/w.safetensors"));
}

TEST(Safetensors, AFolderIsNoFile) {
  const test::TempFolder folder;
  const Result<SafetensorsFile> file = SafetensorsFile::open(folder.path());
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("not a regular file"));
}

TEST(Safetensors, RefusesAnEmptyFile) {
  EXPECT_THAT(complaint(""), HasSubstr("has 0 bytes"));
}

TEST(Safetensors, RefusesSevenBytes) {
  EXPECT_THAT(complaint(length_bytes(1).substr(0, 7)), HasSubstr("has 7 bytes, less than the 8"));
}

TEST(Safetensors, RefusesAHeaderLengthWithTheTopBitSet) {
  EXPECT_THAT(complaint(length_bytes(std::uint64_t{1} << 63) + "{}"), HasSubstr("above the limit"));
}

TEST(Safetensors, RefusesAHeaderLengthAboveTheLimit) {
  EXPECT_THAT(complaint(length_bytes(200'000'000) + std::string(1000, ' ')), HasSubstr("header length 200000000 is above"));
}

TEST(Safetensors, RefusesAHeaderThatEndsOneByteBehindTheFile) {
  EXPECT_THAT(complaint(length_bytes(3) + "{}"), HasSubstr("past the end"));
}

TEST(Safetensors, RefusesAHeaderThatIsNotJson) {
  EXPECT_THAT(complaint(safetensors_bytes("{\"\xff\xfe\":1}", "")), HasSubstr("UTF-8"));
  EXPECT_THAT(complaint(safetensors_bytes("{\"w\":{\"dtype\":\"F32\"", "")), HasSubstr("parse error"));
  EXPECT_THAT(complaint(safetensors_bytes("{} x", "")), HasSubstr("parse error"));
  EXPECT_THAT(complaint(safetensors_bytes("", "")), HasSubstr("JSON object"));
}

TEST(Safetensors, RefusesAHeaderThatDoesNotStartWithAnObject) {
  EXPECT_THAT(complaint(safetensors_bytes("[]", "")), HasSubstr("does not start with a JSON object"));
  EXPECT_THAT(complaint(safetensors_bytes("\xef\xbb\xbf{}", "")), HasSubstr("does not start with a JSON object"));
}

TEST(Safetensors, RefusesOffsetsThatAreNotAnAscendingPairOfWholeNumbers) {
  for (const char* offsets : {"[-4,0]", "[0,-4]", "[4,0]", "[0,4.0]", "[0]", "[0,2,4]", "\"0,4\"", "[0,1e30]", "null"}) {
    EXPECT_THAT(complaint(one_tensor(R"({"dtype":"F32","shape":[1],"data_offsets":)" + std::string(offsets) + "}", 4)),
                testing::AllOf(HasSubstr(": w: data_offsets"), HasSubstr("are not [begin, end]")))
        << offsets;
  }
}

TEST(Safetensors, RefusesAnOverlap) {
  EXPECT_THAT(complaint(safetensors_bytes(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                          R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                                          "1234567")),
              HasSubstr(": b: overlaps"));
}

TEST(Safetensors, RefusesAHole) {
  EXPECT_THAT(complaint(safetensors_bytes(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                          R"("b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
                                          "123456789")),
              HasSubstr(": b: leaves a hole"));
  EXPECT_THAT(complaint(one_tensor(R"({"dtype":"U8","shape":[4],"data_offsets":[1,5]})", 5)),
              HasSubstr(": w: leaves a hole"));
}

TEST(Safetensors, RefusesShapesThatOverflow) {
  for (const char* shape : {"[4294967296,4294967296]",
                            "[9223372036854775807,2]",
                            "[4611686018427387904]",
                            "[2305843009213693952]",
                            "[0,4611686018427387904,4]"}) {
    EXPECT_THAT(complaint(one_tensor(R"({"dtype":"F64","shape":)" + std::string(shape) + R"(,"data_offsets":[0,0]})", 0)),
                HasSubstr("is too large"))
        << shape;
  }
  EXPECT_THAT(complaint(one_tensor(R"({"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,0]})", 0)),
              HasSubstr("something else than sizes"));
  EXPECT_THAT(complaint(one_tensor(R"({"dtype":"U8","shape":[-1],"data_offsets":[0,0]})", 0)),
              HasSubstr("something else than sizes"));
}

TEST(Safetensors, RefusesASizeThatIsOneElementOff) {
  EXPECT_THAT(complaint(one_tensor(R"({"dtype":"F32","shape":[2,2],"data_offsets":[0,12]})", 12)),
              HasSubstr("shape [2,2] of F32 needs 16 bytes, data_offsets give 12"));
}

TEST(Safetensors, RefusesAnUnknownDtypeByName) {
  EXPECT_THAT(complaint(one_tensor(R"({"dtype":"Q4_K","shape":[1],"data_offsets":[0,4]})", 4)),
              HasSubstr(": w: unknown dtype \"Q4_K\""));
}

TEST(Safetensors, RefusesTrailingBytes) {
  EXPECT_THAT(complaint(one_tensor(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", 5)),
              HasSubstr("1 bytes follow the last tensor"));
  EXPECT_THAT(complaint(safetensors_bytes("{}", "x")), HasSubstr("1 bytes follow"));
}

TEST(Safetensors, RefusesATruncatedBuffer) {
  EXPECT_THAT(complaint(one_tensor(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", 3)),
              HasSubstr(": w: ends at byte 4 of the buffer, which has 3"));
}

TEST(Safetensors, RefusesAKeyThatOccursTwice) {
  const std::string w = R"("w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_THAT(complaint(safetensors_bytes("{" + w + "," + w + "}", "1")), HasSubstr("\"w\" occurs twice"));
  EXPECT_THAT(complaint(one_tensor(R"({"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]})", 1)),
              HasSubstr("\"dtype\" occurs twice"));
}

TEST(Safetensors, RefusesMetadataThatIsNotText) {
  EXPECT_THAT(complaint(safetensors_bytes(R"({"__metadata__":{"a":1}})", "")), HasSubstr("__metadata__ a is not a string"));
}

TEST(Safetensors, RefusesSubByteTensorsThatEndInsideAByte) {
  EXPECT_EQ(complaint(one_tensor(R"({"dtype":"F4","shape":[4],"data_offsets":[0,2]})", 2)), "");
  EXPECT_THAT(complaint(one_tensor(R"({"dtype":"F4","shape":[3],"data_offsets":[0,2]})", 2)), HasSubstr("of F4"));
}

TEST(Safetensors, AcceptsATensorWithoutElements) {
  EXPECT_EQ(complaint(one_tensor(R"({"dtype":"F32","shape":[0,5],"data_offsets":[0,0]})", 0)), "");
}

TEST(Safetensors, AcceptsAScalar) {
  EXPECT_EQ(complaint(one_tensor(R"({"dtype":"F64","shape":[],"data_offsets":[0,8]})", 8)), "");
}

TEST(Safetensors, AcceptsAFileWithoutTensors) {
  EXPECT_EQ(complaint(safetensors_bytes("{}      ", "")), "");
}

TEST(Safetensors, AcceptsOffsetsAboveFourGibibytes) {
  const test::TempFolder folder;
  constexpr std::uint64_t kBegin = std::uint64_t{5} << 30;
  const std::string header = R"({"a":{"dtype":"U8","shape":[)" + std::to_string(kBegin) + R"(],"data_offsets":[0,)" +
                             std::to_string(kBegin) + R"(]},"b":{"dtype":"U8","shape":[3],"data_offsets":[)" +
                             std::to_string(kBegin) + "," + std::to_string(kBegin + 3) + "]}}";
  const auto path = folder.write("big.safetensors", safetensors_bytes(header, ""));
  // The bytes between are a hole in the file system, not on the disk.
  std::filesystem::resize_file(path, 8 + header.size() + kBegin);
  std::ofstream(path, std::ios::binary | std::ios::app) << "end";
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  const std::span<const std::byte> bytes = file->bytes(file->tensors().at("b"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "end");
}

TEST(Dtype, NamesAndSizesAreThoseOfTheFormat) {
  for (const auto& [name, bits] : {std::pair{"BOOL", 8U},
                                   {"U8", 8U},
                                   {"I8", 8U},
                                   {"F8_E5M2", 8U},
                                   {"F8_E4M3", 8U},
                                   {"I16", 16U},
                                   {"U16", 16U},
                                   {"F16", 16U},
                                   {"BF16", 16U},
                                   {"I32", 32U},
                                   {"U32", 32U},
                                   {"F32", 32U},
                                   {"I64", 64U},
                                   {"U64", 64U},
                                   {"F64", 64U},
                                   {"C64", 64U},
                                   {"F4", 4U}}) {
    const std::optional<Dtype> dtype = parse_dtype(name);
    ASSERT_TRUE(dtype) << name;
    EXPECT_EQ(to_string(*dtype), name);
    EXPECT_EQ(bits_of(*dtype), bits) << name;
  }
  EXPECT_FALSE(parse_dtype("f32"));
}

}  // namespace
}  // namespace merope::worker
