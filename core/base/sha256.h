// SHA-256 over bytes that arrive in pieces.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace merope {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::string_view bytes);
  // 64 lower-case hex digits of everything so far; the object is used up afterwards.
  std::string finish_hex();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace merope
