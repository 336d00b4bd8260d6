#include "core/camera/model/lens.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/camera/random_geometry.h"

namespace merope::camera {
namespace {

Lens street_lens() {
  return {512, 288, Pinhole{365.6, 365.6, 256, 144}};
}

TEST(Pinhole, GoldenRayOfA120DegreeLens) {
  const Lens lens{832, 480, Pinhole{240.1777120, 240.1777120, 416, 240}};
  const std::optional<Vec3> ray = unproject(lens, {832, 480});
  ASSERT_TRUE(ray.has_value());
  EXPECT_NEAR(ray->x(), 0.774711280, 1e-9);
  EXPECT_NEAR(ray->y(), 0.446948815, 1e-9);
  EXPECT_NEAR(ray->z(), 0.447279766, 1e-9);
}

TEST(Pinhole, PrincipalPointLooksAlongTheAxis) {
  EXPECT_EQ(unproject(street_lens(), {256, 144}), Vec3(0, 0, 1));
}

// One lens of every model in the registry, so that a new one can not be forgotten.
std::vector<Lens> one_of_each() {
  return {street_lens()};
}

TEST(CameraModels, EveryNameHasALensInTheseTests) {
  std::vector<std::string_view> names;
  for (const Lens& lens : one_of_each()) {
    names.push_back(model_name(lens));
  }
  EXPECT_EQ(names, camera_model_names());
  EXPECT_EQ(names.front(), "pinhole");
}

TEST(CameraModels, ProjectUndoesUnproject) {
  RandomGeometry random(4);
  for (const Lens& lens : one_of_each()) {
    for (int i = 0; i < 200; ++i) {
      const Vec2 pixel(random.uniform(0, lens.width), random.uniform(0, lens.height));
      const std::optional<Vec3> ray = unproject(lens, pixel);
      ASSERT_TRUE(ray.has_value());
      EXPECT_NEAR(ray->norm(), 1, 1e-15);
      const std::optional<Vec2> back = project(lens, *ray * random.uniform(0.1, 200));
      ASSERT_TRUE(back.has_value());
      EXPECT_LT((*back - pixel).norm(), 1e-9) << model_name(lens) << ", " << random.trace();
    }
  }
}

TEST(Pinhole, DoesNotSeeBehindItself) {
  EXPECT_FALSE(project(street_lens(), {0, 0, -1}).has_value());
  EXPECT_FALSE(project(street_lens(), {1, 0, 0}).has_value());
}

TEST(CameraModels, RescalingMovesThePixelNotTheRay) {
  RandomGeometry random(5);
  for (const Lens& lens : one_of_each()) {
    const Lens half = rescaled(lens, lens.width / 2, lens.height / 4);
    EXPECT_EQ(half.width, lens.width / 2);
    for (int i = 0; i < 50; ++i) {
      const Vec2 pixel(random.uniform(0, lens.width), random.uniform(0, lens.height));
      const std::optional<Vec3> ray = unproject(lens, pixel);
      const std::optional<Vec3> again = unproject(half, Vec2(pixel.x() / 2, pixel.y() / 4));
      ASSERT_TRUE(ray.has_value() && again.has_value());
      EXPECT_LT((*ray - *again).norm(), 1e-14);
    }
  }
}

TEST(Lens, ValidLensHasNoViolations) {
  for (const Lens& lens : one_of_each()) {
    EXPECT_TRUE(validate(lens).empty());
  }
}

TEST(Lens, NamesWhatIsWrong) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const struct {
    Lens lens;
    FieldViolation expected;
  } kCases[] = {
      {{512, 288, Pinhole{0, 300, 256, 144}}, {"pinhole.fx", "0 is not positive"}},
      {{512, 288, Pinhole{300, -2.5, 256, 144}}, {"pinhole.fy", "-2.5 is not positive"}},
      {{512, 288, Pinhole{300, nan, 256, 144}}, {"pinhole.fy", "nan is not finite"}},
      {{512, 288, Pinhole{300, 300, -1, 144}}, {"pinhole.cx", "-1 is outside the picture (0 to 512)"}},
      {{512, 288, Pinhole{300, 300, 256, 288.5}}, {"pinhole.cy", "288.5 is outside the picture (0 to 288)"}},
      {{0, 288, Pinhole{300, 300, 256, 144}}, {"width", "0 is not in 1 to 65536"}},
      {{512, 70000, Pinhole{300, 300, 256, 144}}, {"height", "70000 is not in 1 to 65536"}},
  };
  for (const auto& c : kCases) {
    const std::vector<FieldViolation> violations = validate(c.lens);
    ASSERT_EQ(violations.size(), 1U) << c.expected.field;
    EXPECT_EQ(violations[0].field, c.expected.field);
    EXPECT_EQ(violations[0].description, c.expected.description);
  }
}

}  // namespace
}  // namespace merope::camera
