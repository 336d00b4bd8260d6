#include "core/camera/model/lens.h"

#include <string>
#include <type_traits>
#include <utility>

#include "core/base/check.h"

namespace merope::camera {
namespace {

template <std::size_t... kIndex>
std::vector<std::string_view> names_of(std::index_sequence<kIndex...>) {
  return {std::variant_alternative_t<kIndex, decltype(Lens::model)>::kName...};
}

void require_side(const char* field, int value, std::vector<FieldViolation>& violations) {
  if (value < 1 || value > kMaxPictureSide) {
    violations.push_back({field, std::to_string(value) + " is not in 1 to " + std::to_string(kMaxPictureSide)});
  }
}

}  // namespace

std::string_view model_name(const Lens& lens) {
  return std::visit([](const auto& model) { return std::decay_t<decltype(model)>::kName; }, lens.model);
}

std::vector<std::string_view> camera_model_names() {
  return names_of(std::make_index_sequence<std::variant_size_v<decltype(Lens::model)>>());
}

std::optional<Vec3> unproject(const Lens& lens, const Vec2& pixel) {
  return std::visit([&](const auto& model) { return unproject(model, pixel); }, lens.model);
}

std::optional<Vec2> project(const Lens& lens, const Vec3& point) {
  return std::visit([&](const auto& model) { return project(model, point); }, lens.model);
}

std::vector<FieldViolation> validate(const Lens& lens) {
  std::vector<FieldViolation> violations;
  require_side("width", lens.width, violations);
  require_side("height", lens.height, violations);
  if (!violations.empty()) {
    return violations;  // without a picture nothing can be said about a principal point
  }
  violations = std::visit([&](const auto& model) { return validate(model, lens.width, lens.height); }, lens.model);
  for (FieldViolation& violation : violations) {
    violation.field = std::string(model_name(lens)) + "." + violation.field;
  }
  return violations;
}

Lens rescaled(const Lens& lens, int width, int height) {
  MEROPE_CHECK(lens.width > 0 && lens.height > 0, "rescaled() of a lens without a picture size");
  const double scale_x = static_cast<double>(width) / lens.width;
  const double scale_y = static_cast<double>(height) / lens.height;
  return {
      width,
      height,
      std::visit([&](const auto& model) { return decltype(Lens::model)(rescaled(model, scale_x, scale_y)); }, lens.model)};
}

}  // namespace merope::camera
