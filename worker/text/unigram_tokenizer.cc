#include "worker/text/unigram_tokenizer.h"

#include <algorithm>
#include <limits>

namespace merope::worker {
namespace {

// How much less likely than the rarest piece an unknown character is.
constexpr float kUnknownPenalty = 10.0F;

std::vector<PieceIndex::Entry> searched_pieces(const SentencepieceModel& model) {
  std::vector<PieceIndex::Entry> entries;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const PieceType type = model.pieces[id].type;
    if (type == PieceType::kNormal || type == PieceType::kUserDefined) {
      entries.push_back({model.pieces[id].text, static_cast<std::int32_t>(id)});
    }
  }
  return entries;
}

// Length of the character that starts with this byte, by the byte alone: the text is normalised and hence valid.
std::size_t char_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0xC0U ? 1 : byte < 0xE0U ? 2 : byte < 0xF0U ? 3 : 4;
}

}  // namespace

UnigramTokenizer::UnigramTokenizer(SentencepieceModel model, TextNormalizer normalizer)
    : model_(std::move(model)), normalizer_(std::move(normalizer)), index_(searched_pieces(model_)) {
  float min_score = std::numeric_limits<float>::max();
  max_score_ = std::numeric_limits<float>::min();
  for (const Piece& piece : model_.pieces) {
    if (piece.type == PieceType::kNormal) {
      min_score = std::min(min_score, piece.score);
      max_score_ = std::max(max_score_, piece.score);
    }
  }
  unknown_score_ = min_score - kUnknownPenalty;
  if (model_.byte_fallback) {
    byte_ids_.resize(256);
    for (std::size_t id = 0; id < model_.pieces.size(); ++id) {
      if (model_.pieces[id].type == PieceType::kByte) {
        byte_ids_[static_cast<std::size_t>(byte_of_piece(model_.pieces[id].text))] = static_cast<std::int32_t>(id);
      }
    }
  }
}

Result<UnigramTokenizer> UnigramTokenizer::create(SentencepieceModel model, const std::string& origin) {
  MEROPE_ASSIGN_OR_RETURN(TextNormalizer normalizer, TextNormalizer::create(model, origin));
  return UnigramTokenizer(std::move(model), std::move(normalizer));
}

std::vector<UnigramTokenizer::Segment> UnigramTokenizer::best_path(std::string_view normalized) const {
  constexpr std::size_t kUnreached = std::numeric_limits<std::size_t>::max();
  // The best way to end at a byte position: the score of the whole path and the last segment of it.
  struct Node {
    float score = 0;
    std::size_t begin = kUnreached;
    std::int32_t id = -1;
  };
  std::vector<Node> ends_at(normalized.size() + 1);
  // Sums and comparisons in double, the stored score in float, as the library does: near ties hang on it.
  const auto offer = [&](std::size_t begin, std::size_t end, std::int32_t id, double score) {
    Node& node = ends_at[end];
    if (node.begin == kUnreached || score > static_cast<double>(node.score)) {
      node = {static_cast<float>(score), begin, id};
    }
  };
  for (std::size_t begin = 0; begin < normalized.size();) {
    const std::size_t one_char = std::min(char_length(normalized[begin]), normalized.size() - begin);
    const float so_far = ends_at[begin].score;
    bool has_one_char_piece = false;
    PieceIndex::Cursor cursor(index_);
    for (std::size_t end = begin; end < normalized.size() && cursor.advance(normalized[end]);) {
      ++end;
      const std::optional<std::int32_t> id = cursor.match();
      if (!id) {
        continue;
      }
      const Piece& piece = model_.pieces[static_cast<std::size_t>(*id)];
      // User-defined symbols score like their length in best pieces, so that they always win.
      const double score = piece.type == PieceType::kUserDefined
                               ? static_cast<double>(static_cast<float>(end - begin) * max_score_) - 0.1
                               : static_cast<double>(piece.score);
      offer(begin, end, *id, score + static_cast<double>(so_far));
      has_one_char_piece = has_one_char_piece || end - begin == one_char;
    }
    if (!has_one_char_piece) {
      offer(begin, begin + one_char, model_.unk_id, static_cast<double>(unknown_score_ + so_far));
    }
    begin += one_char;
  }
  std::vector<Segment> path;
  for (std::size_t end = normalized.size(); end > 0;) {
    const Node& node = ends_at[end];
    path.push_back({normalized.substr(node.begin, end - node.begin), node.id});
    end = node.begin;
  }
  std::ranges::reverse(path);
  return path;
}

std::vector<std::int32_t> UnigramTokenizer::encode(std::string_view text) const {
  const std::string normalized = normalizer_.normalize(text);
  std::vector<std::int32_t> ids;
  bool after_unknown = false;
  for (const Segment& segment : best_path(normalized)) {
    const bool is_unknown = segment.id == model_.unk_id;
    if (is_unknown && model_.byte_fallback) {
      for (const char byte : segment.text) {
        ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
      }
    } else if (!is_unknown || !after_unknown) {
      // A run of unknown characters is one unknown token.
      ids.push_back(segment.id);
    }
    after_unknown = is_unknown;
  }
  return ids;
}

}  // namespace merope::worker
