// Seeded random rotations, directions and poses for property tests. Put trace() into a failure message: it names the seed.
#pragma once

#include <cmath>
#include <numbers>
#include <random>
#include <string>

#include "core/camera/pose.h"

namespace merope::camera {

// Rodrigues' rotation by an angle about a unit axis.
inline Mat3 rotation_about(const Vec3& axis, double angle_rad) {
  Mat3 cross;
  cross << 0, -axis.z(), axis.y(), axis.z(), 0, -axis.x(), -axis.y(), axis.x(), 0;
  return Mat3::Identity() + std::sin(angle_rad) * cross + (1 - std::cos(angle_rad)) * cross * cross;
}

class RandomGeometry {
 public:
  explicit RandomGeometry(unsigned seed) : seed_(seed), engine_(seed) {}

  double uniform(double low, double high) { return low + (high - low) * std::uniform_real_distribution<double>()(engine_); }
  int index(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }

  // Uniform on the sphere.
  Vec3 direction() {
    const double z = uniform(-1, 1);
    const double azimuth = uniform(0, 2 * std::numbers::pi);
    const double radius = std::sqrt(1 - z * z);
    return {radius * std::cos(azimuth), radius * std::sin(azimuth), z};
  }
  Vec3 vector(double reach) { return {uniform(-reach, reach), uniform(-reach, reach), uniform(-reach, reach)}; }
  Mat3 rotation() { return rotation_about(direction(), uniform(0, std::numbers::pi)); }
  Pose pose(double reach_m) { return {rotation(), vector(reach_m)}; }

  std::string trace() const { return "seed " + std::to_string(seed_); }

 private:
  unsigned seed_;
  std::mt19937 engine_;
};

}  // namespace merope::camera
