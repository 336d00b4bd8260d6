#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/text/model_proto.h"
#include "tests/worker/weights/weight_files.h"
#include "worker/text/html_unescape.h"
#include "worker/text/prompt_cleaner.h"
#include "worker/text/prompt_tokenizer.h"

namespace merope::worker {
namespace {

using test::piece_field;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(HtmlUnescape, NamedReferences) {
  EXPECT_EQ(html_unescape("a &amp; b &lt;c&gt; &quot;d&quot; &eacute;&nbsp;&hellip;"), "a & b <c> \"d\" \u00E9\u00A0\u2026");
  EXPECT_EQ(html_unescape("&NotEqualTilde;&fjlig;&CounterClockwiseContourIntegral;"), "\u2242\u0338fj\u2233");
  EXPECT_EQ(html_unescape("&amp;lt;"), "&lt;");
}

TEST(HtmlUnescape, TheSemicolonMayBeMissingOnlyWhereHtmlSaysSo) {
  EXPECT_EQ(html_unescape("&ampx &ltx &notit; &notin;"), "&x <x \u00ACit; \u2209");
  EXPECT_EQ(html_unescape("&hellip &apos &alpha"), "&hellip &apos &alpha");
}

TEST(HtmlUnescape, NumbersInBothBases) {
  EXPECT_EQ(html_unescape("&#65;&#x42;&#X43;&#68 &#x1F600;"), "ABCD \U0001F600");
  EXPECT_EQ(html_unescape("&#128;&#x99;&#129;"), "\u20AC\u2122\u0081");
  EXPECT_EQ(html_unescape("&#0;&#xD800;&#x110000;&#99999999999999999999;"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(html_unescape("[&#1;&#x7F;&#xFFFE;&#xFDD0;&#9;&#13;]"), "[\t\r]");
}

TEST(HtmlUnescape, WhatIsNoReferenceStays) {
  for (const char* text : {"", "&", "&&", "&;", "& amp;", "&#;", "&#x;", "&#xg;", "&unknown;", "R&D", "a&b=1&c=2", "&#"}) {
    EXPECT_EQ(html_unescape(text), text);
  }
}

TEST(CleanPrompt, AsciiOnlyHasItsWhiteSpaceChanged) {
  EXPECT_EQ(clean_prompt("A car, 4K (wide-angle) -- it's <slow> & 50% \"off\"."),
            "A car, 4K (wide-angle) -- it's <slow> & 50% \"off\".");
  EXPECT_EQ(clean_prompt("  a \t b\r\n\r\nc\v\f d  "), "a b c d");
  EXPECT_EQ(clean_prompt(""), "");
  EXPECT_EQ(clean_prompt(" \n\t "), "");
}

TEST(CleanPrompt, EveryUnicodeSpaceIsASpace) {
  EXPECT_EQ(clean_prompt("\u3000a\u00A0\u2003b\u2028c\u0085d\u202Fe\u205F"), "a b c d e");
  EXPECT_EQ(clean_prompt("a\u200Bb"), "a\u200Bb");  // zero width, not white space
}

TEST(CleanPrompt, QuotesAreStraightAndInvisibleCharactersGone) {
  EXPECT_EQ(clean_prompt("\u201Cit\u2019s\u201D \u2018a\u201A \u201Eb\u201F"), "\"it's\" 'a' \"b\"");
  EXPECT_EQ(clean_prompt("\uFEFFa\x07"
                         "b\x7F"
                         "c\uFFFB\x1B[1;31md\x1B[0m e\x1B[12"),
            "abcd e[12");
}

TEST(CleanPrompt, ReferencesAreUndoneTwice) {
  EXPECT_EQ(clean_prompt("<b> &amp;lt; &amp;amp;lt;"), "<b> < &lt;");
  EXPECT_EQ(clean_prompt("&ldquo;rain&rdquo;&nbsp;&amp; fog"), "\"rain\" & fog");
  // Quotes that come out of markup come out late, and stay as they are.
  EXPECT_EQ(clean_prompt("&ldquo;\n<b> &ldquo;"), "\" <b> \u201C");
}

TEST(CleanPrompt, BytesThatAreNoUtf8Stay) {
  EXPECT_EQ(clean_prompt(" \xFF a \xE2\x80 "), "\xFF a \xE2\x80");
}

std::string small_model() {
  return piece_field("<pad>", 0, 3) + piece_field("</s>", 0, 3) + piece_field("<unk>", 0, 2) + piece_field("\u2581", -4) +
         piece_field("\u2581red", -2) + piece_field("\u2581car", -2) + piece_field("s", -3) + piece_field("\u2581cars", -6);
}

PromptTokenizer small_tokenizer() {
  return *PromptTokenizer::create(*SentencepieceModel::parse(small_model(), "spiece.model"), "spiece.model");
}

TEST(PromptTokenizer, CleansCutsEndsAndPads) {
  const PromptTokenizer tokenizer = small_tokenizer();
  const PromptTokens tokens = tokenizer.tokenize("  red \n cars red", 8);
  EXPECT_THAT(tokens.ids, ElementsAre(4, 5, 6, 4, 1, 0, 0, 0));  // car + s is likelier than cars
  EXPECT_EQ(tokens.n_real, 5);
}

TEST(PromptTokenizer, KeepsRoomForTheEndOfTheSequence) {
  const PromptTokenizer tokenizer = small_tokenizer();
  EXPECT_THAT(tokenizer.tokenize("red red red red", 4).ids, ElementsAre(4, 4, 4, 1));
  EXPECT_THAT(tokenizer.tokenize("red red red", 4).ids, ElementsAre(4, 4, 4, 1));
  EXPECT_EQ(tokenizer.tokenize("red red red red", 4).n_real, 4);
  EXPECT_THAT(tokenizer.tokenize("red", 1).ids, ElementsAre(1));
}

TEST(PromptTokenizer, AnEmptyPromptIsTheEndOfTheSequence) {
  const PromptTokens tokens = small_tokenizer().tokenize("", 3);
  EXPECT_THAT(tokens.ids, ElementsAre(1, 0, 0));
  EXPECT_EQ(tokens.n_real, 1);
}

TEST(PromptTokenizer, ARunOfUnknownCharactersIsOneToken) {
  EXPECT_THAT(small_tokenizer().tokenize("\u6C49\u5B57 red", 6).ids, ElementsAre(3, 2, 4, 1, 0, 0));
}

TEST(PromptTokenizer, ReadsTheFolderOfACheckpoint) {
  const test::TempFolder folder;
  Result<PromptTokenizer> tokenizer = PromptTokenizer::open(folder.path());
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, ErrorCode::kNotFound);

  folder.write("tokenizer.json", "{}");
  tokenizer = PromptTokenizer::open(folder.path());
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, ErrorCode::kUnimplemented);
  EXPECT_THAT(tokenizer.error().message, HasSubstr("tokenizer.json alone is not read"));

  folder.write("spiece.model", small_model());
  tokenizer = PromptTokenizer::open(folder.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->tokenize("red", 2).ids.front(), 4);
}

TEST(PromptTokenizer, RefusesAModelWithoutEndOrPadding) {
  for (const char* missing : {"</s>", "<pad>"}) {
    std::string bytes = piece_field("<unk>", 0, 2);
    for (const char* piece : {"</s>", "<pad>"}) {
      bytes += std::string_view(piece) == missing ? "" : piece_field(piece, 0, 3);
    }
    const auto tokenizer = PromptTokenizer::create(*SentencepieceModel::parse(bytes, "m"), "m");
    ASSERT_FALSE(tokenizer);
    EXPECT_EQ(tokenizer.error().code, ErrorCode::kFailedPrecondition);
    EXPECT_THAT(tokenizer.error().message, HasSubstr(missing));
  }
}

}  // namespace
}  // namespace merope::worker
