#include "worker/text/sentencepiece_model.h"

#include <array>
#include <cmath>
#include <fstream>
#include <sstream>
#include <system_error>
#include <unordered_set>

#include "worker/text/internal/protobuf_wire.h"

namespace merope::worker {
namespace {

Error broken(const std::string& origin, const std::string& what) {
  return {ErrorCode::kDataLoss, origin + ": " + what};
}

constexpr std::array<const char*, 5> kAlgorithms{"none", "unigram", "BPE", "word", "char"};

Result<Piece> parse_piece(std::string_view message, const std::string& origin) {
  Piece piece;
  WireReader reader(message);
  while (const std::optional<WireField> field = reader.next()) {
    if (field->number == 1 && field->is_bytes) {
      piece.text = field->bytes;
    } else if (field->number == 2 && !field->is_bytes) {
      piece.score = field->as_float();
    } else if (field->number == 3 && !field->is_bytes) {
      if (field->integer < 1 || field->integer > 6) {
        return broken(origin, "has the unknown type " + std::to_string(field->integer));
      }
      piece.type = static_cast<PieceType>(field->integer);
    }
  }
  if (!reader.ok() || piece.text.empty() || !std::isfinite(piece.score)) {
    return broken(origin, "is malformed, empty, or has no finite score");
  }
  return piece;
}

struct TrainerFields {
  std::uint64_t model_type = 1;
  std::int32_t eos_id = 2;
  std::int32_t pad_id = -1;
  std::string eos_piece = "</s>";
  std::string pad_piece = "<pad>";
};

bool parse_trainer(std::string_view message, SentencepieceModel& model, TrainerFields& trainer) {
  WireReader reader(message);
  while (const std::optional<WireField> field = reader.next()) {
    switch (field->number) {
      case 3: trainer.model_type = field->integer; break;
      case 24: model.treat_whitespace_as_suffix = field->integer != 0; break;
      case 35: model.byte_fallback = field->integer != 0; break;
      case 42: trainer.eos_id = field->as_int32(); break;
      case 43: trainer.pad_id = field->as_int32(); break;
      case 47: trainer.eos_piece = field->bytes; break;
      case 48: trainer.pad_piece = field->bytes; break;
      default: break;
    }
  }
  return reader.ok();
}

bool parse_normalizer(std::string_view message, SentencepieceModel& model) {
  WireReader reader(message);
  while (const std::optional<WireField> field = reader.next()) {
    switch (field->number) {
      case 2: model.charsmap = field->bytes; break;
      case 3: model.add_dummy_prefix = field->integer != 0; break;
      case 4: model.remove_extra_whitespaces = field->integer != 0; break;
      case 5: model.escape_whitespaces = field->integer != 0; break;
      default: break;
    }
  }
  return reader.ok();
}

Status check_pieces(SentencepieceModel& model, const std::string& origin) {
  std::unordered_set<std::string_view> searched;
  std::unordered_set<std::string_view> reserved;
  std::array<bool, 256> has_byte{};
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    const std::string name = "piece " + std::to_string(id) + " \"" + piece.text + "\"";
    const bool is_searched =
        piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined || piece.type == PieceType::kUnused;
    if (!(is_searched ? searched : reserved).insert(piece.text).second) {
      return broken(origin, name + " occurs twice");
    }
    if (piece.type == PieceType::kUnknown) {
      if (model.unk_id >= 0) {
        return broken(origin, name + " is a second unknown piece");
      }
      model.unk_id = static_cast<std::int32_t>(id);
    }
    if (piece.type == PieceType::kByte) {
      const int byte = byte_of_piece(piece.text);
      if (byte < 0 || !model.byte_fallback) {
        return broken(origin, name + (byte < 0 ? " names no byte" : " is a byte piece, but byte_fallback is off"));
      }
      has_byte[static_cast<std::size_t>(byte)] = true;
    }
  }
  if (model.unk_id < 0) {
    return broken(origin, "has no unknown piece");
  }
  for (std::size_t byte = 0; byte < has_byte.size() && model.byte_fallback; ++byte) {
    if (!has_byte[byte]) {
      return broken(origin, "byte_fallback is on, but there is no piece for byte " + std::to_string(byte));
    }
  }
  return {};
}

}  // namespace

Result<SentencepieceModel> SentencepieceModel::parse(std::string_view bytes, const std::string& origin) {
  SentencepieceModel model;
  TrainerFields trainer;
  bool parts_ok = true;
  WireReader reader(bytes);
  while (const std::optional<WireField> field = reader.next()) {
    if (!field->is_bytes) {
      continue;
    }
    if (field->number == 1) {
      MEROPE_ASSIGN_OR_RETURN(Piece piece,
                              parse_piece(field->bytes, origin + ": piece " + std::to_string(model.pieces.size())));
      model.pieces.push_back(std::move(piece));
    } else if (field->number == 2) {
      parts_ok = parse_trainer(field->bytes, model, trainer) && parts_ok;
    } else if (field->number == 3) {
      parts_ok = parse_normalizer(field->bytes, model) && parts_ok;
    }
  }
  if (!reader.ok() || !parts_ok || model.pieces.empty() || model.pieces.size() > 0x7fffffffU) {
    return broken(origin, "is not a SentencePiece model");
  }
  if (trainer.model_type != 1) {
    const char* const name = trainer.model_type < kAlgorithms.size() ? kAlgorithms[trainer.model_type] : "unknown";
    return Error{ErrorCode::kUnimplemented,
                 origin + ": is a model of type " + name + " (" + std::to_string(trainer.model_type) +
                     "); only unigram models are supported"};
  }
  MEROPE_RETURN_IF_ERROR(check_pieces(model, origin));
  // A number counts only when it is the id of a control piece: some files keep the message's default and mean the piece.
  const auto control_id = [&](std::int32_t id, const std::string& text) {
    const bool fits = id >= 0 && static_cast<std::size_t>(id) < model.pieces.size() &&
                      model.pieces[static_cast<std::size_t>(id)].type == PieceType::kControl &&
                      model.pieces[static_cast<std::size_t>(id)].text == text;
    return fits ? id : model.reserved_id(text);
  };
  model.eos_id = control_id(trainer.eos_id, trainer.eos_piece);
  model.pad_id = control_id(trainer.pad_id, trainer.pad_piece);
  return model;
}

Result<SentencepieceModel> SentencepieceModel::read(const std::filesystem::path& path) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(path, failure)) {
    return Error{std::filesystem::exists(path, failure) ? ErrorCode::kDataLoss : ErrorCode::kNotFound,
                 path.string() + ": is not a file that can be read"};
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string bytes = std::move(text).str();
  if (!file || bytes.empty()) {
    return Error{ErrorCode::kDataLoss, path.string() + ": is empty or cannot be read"};
  }
  return parse(bytes, path.string());
}

std::int32_t SentencepieceModel::reserved_id(std::string_view text) const {
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    const PieceType type = pieces[id].type;
    if ((type == PieceType::kControl || type == PieceType::kUnknown) && pieces[id].text == text) {
      return static_cast<std::int32_t>(id);
    }
  }
  return -1;
}

int byte_of_piece(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') {
    return -1;
  }
  int byte = 0;
  for (const char digit : text.substr(3, 2)) {
    const std::size_t value = std::string_view("0123456789ABCDEF").find(digit);
    if (value == std::string_view::npos) {
      return -1;
    }
    byte = byte * 16 + static_cast<int>(value);
  }
  return byte;
}

}  // namespace merope::worker
