#include "worker/text/text_normalizer.h"

#include "worker/text/internal/utf8.h"

namespace merope::worker {
namespace {

constexpr std::string_view kSpaceSymbol = "\u2581";
constexpr std::string_view kReplacementChar = "\uFFFD";

std::vector<PieceIndex::Entry> user_defined_pieces(const SentencepieceModel& model) {
  std::vector<PieceIndex::Entry> entries;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type == PieceType::kUserDefined) {
      entries.push_back({model.pieces[id].text, static_cast<std::int32_t>(id)});
    }
  }
  return entries;
}

}  // namespace

TextNormalizer::TextNormalizer(const SentencepieceModel& model, Charsmap map)
    : map_(std::move(map)),
      user_defined_(user_defined_pieces(model)),
      add_dummy_prefix_(model.add_dummy_prefix),
      remove_extra_whitespaces_(model.remove_extra_whitespaces),
      treat_whitespace_as_suffix_(model.treat_whitespace_as_suffix),
      space_(model.escape_whitespaces ? kSpaceSymbol : std::string_view(" ")) {}

Result<TextNormalizer> TextNormalizer::create(const SentencepieceModel& model, const std::string& origin) {
  MEROPE_ASSIGN_OR_RETURN(Charsmap map, Charsmap::parse(model.charsmap, origin));
  return TextNormalizer(model, std::move(map));
}

TextNormalizer::Prefix TextNormalizer::normalize_prefix(std::string_view text) const {
  if (const std::size_t length = user_defined_.longest_prefix(text); length > 0) {
    return {text.substr(0, length), length};
  }
  if (const Charsmap::Match match = map_.longest_match(text); match.length > 0) {
    return {match.replacement, match.length};
  }
  const Utf8Char character = first_char(text);
  return {character.valid ? text.substr(0, character.length) : kReplacementChar, character.length};
}

std::string TextNormalizer::normalize(std::string_view text) const {
  while (remove_extra_whitespaces_ && !text.empty()) {
    const Prefix prefix = normalize_prefix(text);
    if (prefix.replacement != " ") {
      break;
    }
    text.remove_prefix(prefix.length);
  }
  std::string normalized;
  if (text.empty()) {
    return normalized;
  }
  if (add_dummy_prefix_ && !treat_whitespace_as_suffix_) {
    normalized += space_;
  }
  bool after_space = remove_extra_whitespaces_;
  while (!text.empty()) {
    Prefix prefix = normalize_prefix(text);
    while (after_space && prefix.replacement.starts_with(' ')) {
      prefix.replacement.remove_prefix(1);
    }
    for (const char byte : prefix.replacement) {
      if (byte == ' ') {
        normalized += space_;
      } else {
        normalized += byte;
      }
    }
    // A character that vanished leaves the question as it was: the spaces around it are neighbours.
    if (!prefix.replacement.empty()) {
      after_space = remove_extra_whitespaces_ && prefix.replacement.ends_with(' ');
    }
    text.remove_prefix(prefix.length);
  }
  while (remove_extra_whitespaces_ && normalized.ends_with(space_)) {
    normalized.resize(normalized.size() - space_.size());
  }
  if (add_dummy_prefix_ && treat_whitespace_as_suffix_) {
    normalized += space_;
  }
  return normalized;
}

}  // namespace merope::worker
