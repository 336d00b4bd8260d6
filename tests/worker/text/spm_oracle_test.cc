// Compares the tokenizer with the SentencePiece library itself: spm_train makes small models, spm_encode says what the ids
// are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/worker/weights/weight_files.h"
#include "worker/text/unigram_tokenizer.h"

namespace merope::worker {
namespace {

bool has_sentencepiece() {
  return std::system("command -v spm_train spm_encode >/dev/null 2>&1") == 0;
}

std::string corpus_path() {
  const char* const root = std::getenv("MEROPE_SOURCE_DIR");
  return std::string(root == nullptr ? "." : root) + "/tests/worker/text/corpus.txt";
}

// None holds a line feed: spm_encode reads lines.
std::vector<std::string> awkward_texts() {
  using namespace std::string_literals;
  std::vector<std::string> texts{
      "",
      " ",
      "   \t  ",
      "a",
      "The camera moves forward slowly.",
      "  leading,  double   and trailing spaces  ",
      "THE CAMERA moves ΑΒΓ",
      "一辆汽车,在雨中的街道上缓慢行驶。",
      "一辆汽车\uFF0C在雨中的街道上缓慢行驶\u3002\uFF01",
      "\uFF21\uFF22\uFF23 full\u3000width \uFF11\uFF12\uFF13",
      "\uFB01ne \uFB02oor \u2460\u2461 \u00BD \u2122 \u33A1 \u2167",
      "e\u0301le\u0300ve A\u030A o\u0308 \u1E9B\u0323 q\u0307\u0323",
      "가 \u1100\u1161\u11A8 각",
      "\uFF76\uFF9E \uFF8A\uFF9F half-width kana \u304B\u3099",
      "emoji \U0001F600\U0001F468\u200D\U0001F469\u200D\U0001F467\U0001F3FD \U0001F1E9\U0001F1EA \u2764\uFE0F",
      "soft\u00ADhyphen zero\u200Bwidth\u200Cjoin\u200Der\uFEFFbom",
      "nbsp\u00A0thin\u2009ideographic\u3000line\u2028para\u2029end",
      "controls \x01\x02\x1B[31mred\x1B[0m \x7F bell\x07 tab\there cr\rback",
      "nul \0 inside"s,
      "\xFF\xFE invalid \xC3( \xE2\x82 \xF0\x9F\x98 \xED\xA0\x80 \xC0\x80 \xF5\x80\x80\x80",
      "\xE2\x96\x81 literal \xE2\x96\x81\xE2\x96\x81 meta \xE2\x96\x81",
      "<pad> </s> <unk> <0x41> <s> <extra_id_0>",
      "السيارة تسير \u0627\u0644\u0644\u0647 \uFDFA",
      "हिन्दी क्षत्रिय सड़क",
      "รถยนต์คันหนึ่ง น้ำ",
      "\U00020000\U0002A6D6 \U0010FFFD \uE000 \uFFFD",
      "http://example.com/?q=1&r=2#x user@host 3.14159 1,000,000",
      "qzxj\u00FE\u00F0 kwfxq vvvvvv",
      std::string(3000, 'a'),
  };
  std::string long_text;
  for (int i = 0; i < 400; ++i) {
    long_text += "The cat sat on the wall, \u5B69\u5B50\u4EEC \u00FCber " + std::to_string(i) + "; ";
  }
  texts.push_back(long_text);
  return texts;
}

// Words of the corpus, characters from everywhere and stray bytes, in random order.
std::vector<std::string> random_texts(std::uint32_t seed, int count) {
  std::ifstream corpus(corpus_path());
  std::vector<std::string> words;
  for (std::string word; corpus >> word;) {
    words.push_back(word);
  }
  const std::vector<std::string> oddities{" ",          "  ",     "\u3000", "\u00A0",   "\u200B", "\u0301", "\u0308",
                                          "\uFF01",     "\uFF0C", "\uFB03", "\u2460",   "\uAC00", "\u1100", "\u1161",
                                          "\U0001F680", "\t",     "\x80",   "\xE4\xB8", "&",      "\u2581", "\u212B",
                                          "\u1E69",     "\u0323", "\u0307", "\x05",     "\u6C49", "-"};
  std::mt19937 random(seed);
  const auto pick = [&](const std::vector<std::string>& from) { return from[random() % from.size()]; };
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    std::string text;
    for (auto part = random() % 30; part > 0; --part) {
      const auto kind = random() % 8;
      if (kind < 4) {
        text += pick(words) + (kind < 3 ? " " : "");
      } else if (kind < 6) {
        text += pick(oddities);
      } else if (kind == 6) {
        const std::string word = pick(words);
        text += word.substr(random() % word.size());  // may start inside a character
      } else {
        text += static_cast<char>(random() % 256);
      }
    }
    std::erase(text, '\n');
    texts.push_back(text);
  }
  return texts;
}

struct Variant {
  const char* name;
  const char* options;
};

class SpmOracle : public testing::TestWithParam<Variant> {};

TEST_P(SpmOracle, GivesTheSameIds) {
  if (!has_sentencepiece()) {
    GTEST_SKIP() << "spm_train and spm_encode are not installed (Debian package sentencepiece)";
  }
  const test::TempFolder folder;
  const std::string prefix = (folder.path() / "spiece").string();
  const std::string train = "spm_train --input='" + corpus_path() + "' --model_prefix='" + prefix +
                            "' --model_type=unigram --hard_vocab_limit=false --pad_id=0 --eos_id=1 --unk_id=2 --bos_id=-1 " +
                            "--num_threads=1 --minloglevel=2 " + GetParam().options + " >'" + prefix + ".log' 2>&1";
  ASSERT_EQ(std::system(train.c_str()), 0) << train;
  Result<SentencepieceModel> model = SentencepieceModel::read(prefix + ".model");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->pad_id, 0);
  EXPECT_EQ(model->eos_id, 1);
  EXPECT_EQ(model->unk_id, 2);
  const Result<UnigramTokenizer> tokenizer = UnigramTokenizer::create(*std::move(model), "spiece.model");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;

  constexpr std::uint32_t kSeed = 20240501;
  std::vector<std::string> texts = awkward_texts();
  std::ranges::copy(random_texts(kSeed, 1000), std::back_inserter(texts));
  std::string lines;
  for (const std::string& text : texts) {
    lines += text + "\n";
  }
  folder.write("texts", lines);
  const std::string encode = "spm_encode --model='" + prefix + ".model' --output_format=id --input='" +
                             (folder.path() / "texts").string() + "' --output='" + (folder.path() / "ids").string() +
                             "' 2>/dev/null";
  ASSERT_EQ(std::system(encode.c_str()), 0) << encode;

  std::ifstream ids(folder.path() / "ids");
  int n_wrong = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string line;
    ASSERT_TRUE(std::getline(ids, line)) << "spm_encode stopped at text " << i;
    std::istringstream numbers(line);
    std::vector<std::int32_t> expected;
    for (std::int32_t id = 0; numbers >> id;) {
      expected.push_back(id);
    }
    if (tokenizer->encode(texts[i]) != expected && ++n_wrong <= 3) {
      ADD_FAILURE() << "text " << i << " (random ones have seed " << kSeed << "): " << testing::PrintToString(texts[i])
                    << "\n got " << testing::PrintToString(tokenizer->encode(texts[i])) << "\nwant " << line;
    }
  }
  EXPECT_EQ(n_wrong, 0) << "of " << texts.size();
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    SpmOracle,
    testing::Values(
        Variant{"as_umt5", "--vocab_size=700 --character_coverage=0.98 --byte_fallback=true"},
        Variant{"unknowns", "--vocab_size=700 --character_coverage=0.98"},
        Variant{"user_symbols", "--vocab_size=700 --user_defined_symbols=camera,\u5B69\u5B50,\u2460 --byte_fallback=true"},
        Variant{"suffix", "--vocab_size=700 --treat_whitespace_as_suffix=true"},
        Variant{"identity", "--vocab_size=700 --normalization_rule_name=identity --remove_extra_whitespaces=false"},
        Variant{"no_prefix", "--vocab_size=700 --normalization_rule_name=nfkc_cf --add_dummy_prefix=false"}),
    [](const testing::TestParamInfo<Variant>& variant) { return variant.param.name; });

}  // namespace
}  // namespace merope::worker
