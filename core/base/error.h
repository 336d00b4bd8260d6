// The error that travels between rooms: a code, and a sentence for the reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace merope {

// The numbers are those of gRPC's status codes, so the server maps a code by a cast.
enum class ErrorCode : std::uint8_t {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// "INVALID_ARGUMENT", as gRPC spells it.
std::string_view to_string(ErrorCode code);

// One field of a request that is wrong: the path as the client spelt it ("trajectory.frames[12].c2w") and why.
struct FieldViolation {
  std::string field;
  std::string description;
  bool operator==(const FieldViolation&) const = default;
};

struct Error {
  ErrorCode code = ErrorCode::kUnknown;
  std::string message;
  // All wrong fields of a request at once; empty when the error is not about fields.
  std::vector<FieldViolation> violations = {};

  bool operator==(const Error&) const = default;
};

// An kInvalidArgument whose message lists the violations.
Error invalid_fields(std::vector<FieldViolation> violations);

// Whether the same call may succeed later without being changed. The one place that decides it, for server, worker and client.
constexpr bool is_retryable(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kResourceExhausted || code == ErrorCode::kAborted;
}

inline Error invalid_argument(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }
inline Error internal_error(std::string message) { return {ErrorCode::kInternal, std::move(message)}; }
inline Error unavailable(std::string message) { return {ErrorCode::kUnavailable, std::move(message)}; }
inline Error not_found(std::string message) { return {ErrorCode::kNotFound, std::move(message)}; }

}  // namespace merope
