#include "worker/text/sentencepiece_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/worker/text/model_proto.h"
#include "worker/text/charsmap.h"

namespace merope::worker {
namespace {

using test::bytes_field;
using test::integer_field;
using test::piece_field;
using testing::HasSubstr;

const std::string kUnknown = piece_field("<unk>", 0, 2);

std::string complaint(const std::string& bytes, ErrorCode code = ErrorCode::kDataLoss) {
  const auto model = SentencepieceModel::parse(bytes, "tokenizer/spiece.model");
  if (model) {
    return "";
  }
  EXPECT_EQ(model.error().code, code);
  EXPECT_THAT(model.error().message, testing::StartsWith("tokenizer/spiece.model: "));
  return model.error().message;
}

TEST(SentencepieceModel, ReadsPiecesAndSettingsInAnyOrder) {
  const std::string trainer = integer_field(3, 1) + integer_field(40, 3) + integer_field(41, 2) + integer_field(42, 1) +
                              integer_field(43, 0) + integer_field(24, 1) + bytes_field(99, "unknown field");
  const std::string normalizer =
      bytes_field(1, "nmt_nfkc") + integer_field(3, 0) + integer_field(4, 0) + integer_field(5, 0);
  const auto model =
      SentencepieceModel::parse(bytes_field(3, normalizer) + bytes_field(2, trainer) + piece_field("<pad>", 0, 3) +
                                    piece_field("</s>", 0, 3) + piece_field("<s>", 0, 3) + kUnknown +
                                    piece_field("\u2581the", -3.25F) + piece_field("x", -9, 5) + bytes_field(4, "self test"),
                                "spiece.model");
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_EQ(model->pieces.size(), 6U);
  EXPECT_EQ(model->pieces[4].text, "\u2581the");
  EXPECT_EQ(model->pieces[4].score, -3.25F);
  EXPECT_EQ(model->pieces[4].type, PieceType::kNormal);
  EXPECT_EQ(model->pieces[5].type, PieceType::kUnused);
  EXPECT_EQ(model->pad_id, 0);
  EXPECT_EQ(model->eos_id, 1);
  EXPECT_EQ(model->unk_id, 3);
  EXPECT_TRUE(model->treat_whitespace_as_suffix);
  EXPECT_FALSE(model->add_dummy_prefix);
  EXPECT_FALSE(model->remove_extra_whitespaces);
  EXPECT_FALSE(model->escape_whitespaces);
  EXPECT_FALSE(model->byte_fallback);
}

TEST(SentencepieceModel, FindsSpecialPiecesByTextWhenTheNumbersAreNotTheirs) {
  // Without trainer settings the message's defaults say that the end of a sequence is id 2 and that there is no padding.
  const auto model = SentencepieceModel::parse(
      piece_field("<pad>", 0, 3) + piece_field("</s>", 0, 3) + kUnknown + piece_field("a", -1), "m");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->pad_id, 0);
  EXPECT_EQ(model->eos_id, 1);
  EXPECT_EQ(model->unk_id, 2);
  EXPECT_EQ(SentencepieceModel::parse(kUnknown, "m")->eos_id, -1);
}

TEST(SentencepieceModel, RefusesBytesThatAreNoModel) {
  const std::string whole = kUnknown + piece_field("a", -1);
  EXPECT_EQ(complaint(whole), "");
  EXPECT_THAT(complaint(""), HasSubstr("is not a SentencePiece model"));
  EXPECT_THAT(complaint("{\"version\":\"1.0\"}"), HasSubstr("is not a SentencePiece model"));
  EXPECT_THAT(complaint(whole.substr(0, whole.size() - 1)), HasSubstr("is not a SentencePiece model"));
  EXPECT_THAT(complaint(whole + bytes_field(2, "\x18")), HasSubstr("is not a SentencePiece model"));
  EXPECT_THAT(complaint(whole + std::string(11, '\xFF')), HasSubstr("is not a SentencePiece model"));
  EXPECT_THAT(complaint(whole + bytes_field(1, "\x0A\x7F")), HasSubstr("piece 2: is malformed"));
}

TEST(SentencepieceModel, NamesThePieceThatIsWrong) {
  EXPECT_THAT(complaint(piece_field("a", -1)), HasSubstr("has no unknown piece"));
  EXPECT_THAT(complaint(kUnknown + piece_field("<UNK>", 0, 2)), HasSubstr("piece 1 \"<UNK>\" is a second unknown piece"));
  EXPECT_THAT(complaint(kUnknown + piece_field("a", -1) + piece_field("a", -2)), HasSubstr("piece 2 \"a\" occurs twice"));
  EXPECT_THAT(complaint(kUnknown + piece_field("", -1)), HasSubstr("piece 1: is malformed, empty"));
  EXPECT_THAT(complaint(kUnknown + piece_field("a", std::numeric_limits<float>::quiet_NaN())), HasSubstr("no finite score"));
  EXPECT_THAT(complaint(kUnknown + piece_field("a", 0, 7)), HasSubstr("piece 1: has the unknown type 7"));
  EXPECT_THAT(complaint(kUnknown + piece_field("<0x41>", 0, 6)), HasSubstr("byte_fallback is off"));
  EXPECT_THAT(complaint(kUnknown + piece_field("<0x4G>", 0, 6)), HasSubstr("names no byte"));
  EXPECT_THAT(complaint(kUnknown + bytes_field(2, integer_field(35, 1))), HasSubstr("no piece for byte 0"));
}

TEST(SentencepieceModel, RefusesOtherAlgorithmsByName) {
  EXPECT_THAT(complaint(kUnknown + bytes_field(2, integer_field(3, 2)), ErrorCode::kUnimplemented),
              HasSubstr("type BPE (2)"));
  EXPECT_THAT(complaint(kUnknown + bytes_field(2, integer_field(3, 9)), ErrorCode::kUnimplemented),
              HasSubstr("type unknown (9)"));
}

TEST(SentencepieceModel, AMissingFileIsNotFound) {
  EXPECT_EQ(SentencepieceModel::read("/nonexistent/spiece.model").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(SentencepieceModel::read("/").error().code, ErrorCode::kDataLoss);
}

TEST(Charsmap, RefusesBlobsWhoseSizesDoNotFit) {
  using namespace std::string_literals;
  EXPECT_TRUE(Charsmap::parse("", "m"));
  EXPECT_TRUE(Charsmap::parse("\4\0\0\0abcd\0"s, "m"));
  for (const std::string& blob :
       {"\4"s, "\4\0\0\0abcd"s, "\0\0\0\0\0"s, "\3\0\0\0abc\0"s, "\4\0\0\0abcdx"s, "\xFF\xFF\xFF\xFF\0"s}) {
    const auto map = Charsmap::parse(blob, "m");
    ASSERT_FALSE(map);
    EXPECT_EQ(map.error().message, "m: the normaliser's character map is broken");
  }
}

TEST(Charsmap, ATrieThatLeadsAstrayMatchesNothing) {
  // Every 32-bit pattern repeated as a trie: no lookup may leave the units or the replacements.
  for (std::uint32_t bits = 1; bits != 0; bits <<= 1U) {
    for (const std::uint32_t unit : {bits, ~bits}) {
      std::string blob{'\x40', 0, 0, 0};
      for (int i = 0; i < 16; ++i) {
        blob.append(reinterpret_cast<const char*>(&unit), 4);
      }
      const auto map = Charsmap::parse(blob + std::string(1, '\0'), "m");
      ASSERT_TRUE(map);
      for (int byte = 0; byte < 256; ++byte) {
        EXPECT_LE(map->longest_match(std::string(3, static_cast<char>(byte))).length, 3U);
      }
    }
  }
}

}  // namespace
}  // namespace merope::worker
