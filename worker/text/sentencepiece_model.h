// `spiece.model`: the file a SentencePiece tokenizer is stored in (a protobuf message ModelProto), read without protobuf.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace merope::worker {

enum class PieceType : std::uint8_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct Piece {
  std::string text;  // UTF-8, never empty; spaces are U+2581
  float score = 0;   // log-probability
  PieceType type = PieceType::kNormal;
};

// Defaults are those of the message.
struct SentencepieceModel {
  std::vector<Piece> pieces;  // the index is the token id
  std::int32_t unk_id = -1;   // of the one piece of type kUnknown
  std::int32_t eos_id = -1;   // -1: the model has none
  std::int32_t pad_id = -1;
  bool byte_fallback = false;  // unknown characters become their bytes, for which there are 256 pieces

  // How text is normalised before it is cut into pieces.
  std::string charsmap;  // see charsmap.h; empty: characters stay as they are
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool treat_whitespace_as_suffix = false;

  // `origin` starts every message. kDataLoss when the bytes are no such message or contradict themselves: no unknown piece
  // or two, a piece twice, byte pieces missing. kUnimplemented for the other algorithms of the format (BPE, word, char).
  static Result<SentencepieceModel> parse(std::string_view bytes, const std::string& origin);
  static Result<SentencepieceModel> read(const std::filesystem::path& path);

  // Id of the control or unknown piece with this text, or -1.
  std::int32_t reserved_id(std::string_view text) const;
};

// The byte of a piece such as "<0x0A>", or -1.
int byte_of_piece(std::string_view text);

}  // namespace merope::worker
