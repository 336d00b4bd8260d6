#include "core/base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "core/base/check.h"

namespace merope {

struct Sha256::Impl {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~Impl() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {
  MEROPE_CHECK(EVP_DigestInit_ex(impl_->context, EVP_sha256(), nullptr) == 1, "EVP_DigestInit_ex");
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  MEROPE_CHECK(EVP_DigestUpdate(impl_->context, bytes.data(), bytes.size()) == 1, "EVP_DigestUpdate");
}

std::string Sha256::finish_hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  MEROPE_CHECK(EVP_DigestFinal_ex(impl_->context, digest.data(), &length) == 1, "EVP_DigestFinal_ex");
  std::string hex;
  for (unsigned i = 0; i < length; ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    hex += kDigits[digest[i] >> 4U];
    hex += kDigits[digest[i] & 15U];
  }
  return hex;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish_hex();
}

}  // namespace merope
