#include "core/camera/internal/number_text.h"

#include <array>
#include <charconv>

namespace merope::camera::internal {

std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

std::string rough(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 2);
  return {text.data(), end.ptr};
}

}  // namespace merope::camera::internal
