#include "server/standalone/append_only_tail.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace merope::standalone {
namespace {

namespace fs = std::filesystem;

enum class Read { kOk, kEnd, kWrong };

// "*3\r\n" or "$5\r\n": the prefix, then a number. kEnd when the file ends within it.
Read read_count(std::istream& file, char prefix, std::uint64_t& count) {
  std::string line;
  if (!std::getline(file, line) || file.eof()) {
    return Read::kEnd;
  }
  const char* end = line.data() + line.size() - 1;
  if (line.size() < 3 || line.front() != prefix || *end != '\r') {
    return Read::kWrong;
  }
  const auto [stop, error] = std::from_chars(line.data() + 1, end, count);
  return error == std::errc() && stop == end ? Read::kOk : Read::kWrong;
}

// Reads over one command and returns its first word in `name`.
Read read_command(std::istream& file, std::uint64_t file_size, std::string& name) {
  std::uint64_t n_words = 0;
  if (const Read read = read_count(file, '*', n_words); read != Read::kOk) {
    return read;
  }
  for (std::uint64_t i = 0; i < n_words; ++i) {
    std::uint64_t size = 0;
    if (const Read read = read_count(file, '$', size); read != Read::kOk) {
      return read;
    }
    const auto at = static_cast<std::uint64_t>(file.tellg());
    if (size > file_size || at + size + 2 > file_size) {
      return Read::kEnd;
    }
    if (i == 0) {
      name.resize(size);
      file.read(name.data(), static_cast<std::streamsize>(size));
    } else {
      file.seekg(static_cast<std::streamoff>(at + size));
    }
    if (file.get() != '\r' || file.get() != '\n') {
      return Read::kWrong;
    }
  }
  return Read::kOk;
}

// Where the torn tail begins; the file's size when it has none.
std::uint64_t whole_size(std::istream& file, std::uint64_t file_size) {
  std::optional<std::uint64_t> open_multi;
  std::uint64_t at = 0;
  while (at < file_size) {
    std::string name;
    const Read read = read_command(file, file_size, name);
    if (read == Read::kWrong) {
      return file_size;
    }
    if (read == Read::kEnd) {
      return open_multi.value_or(at);
    }
    if (name == "MULTI") {
      open_multi = at;
    } else if (name == "EXEC") {
      open_multi.reset();
    }
    at = static_cast<std::uint64_t>(file.tellg());
  }
  return open_multi.value_or(file_size);
}

// The manifest has one line a file: "file NAME seq N type b|i|h"; the last of type i is the one that is written to.
std::optional<fs::path> newest_file(const fs::path& folder) {
  std::ifstream manifest(folder / "appendonly.aof.manifest");
  std::optional<fs::path> newest;
  for (std::string line; std::getline(manifest, line);) {
    std::istringstream words(line);
    std::string file_key, name, seq_key, seq, type_key, type;
    if (words >> file_key >> name >> seq_key >> seq >> type_key >> type && type == "i") {
      newest = folder / name;
    }
  }
  return newest;
}

}  // namespace

Result<std::uint64_t> cut_torn_tail(const std::string& folder) {
  const std::optional<fs::path> path = newest_file(folder);
  std::error_code failure;
  if (!path || !fs::exists(*path, failure)) {
    return std::uint64_t{0};
  }
  const std::uint64_t size = fs::file_size(*path, failure);
  std::ifstream file(*path, std::ios::binary);
  if (failure || !file) {
    return invalid_argument(path->string() + " can not be read: " + std::strerror(errno));
  }
  const std::uint64_t whole = whole_size(file, size);
  if (whole < size) {
    fs::resize_file(*path, whole, failure);
    if (failure) {
      return invalid_argument(path->string() + " can not be cut: " + failure.message());
    }
  }
  return size - whole;
}

}  // namespace merope::standalone
