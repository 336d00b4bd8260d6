// Result<T>: a value or an Error. The member names are those of std::expected, which GCC 12 does not have in C++20 mode, so
// that it can be swapped in later.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "core/base/check.h"
#include "core/base/error.h"

namespace merope {

template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor): return value;
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor): return error;

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // The value must be there: asking for the other one is a bug of the caller and ends the process.
  T& value() & {
    MEROPE_CHECK(has_value(), std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  const T& value() const& {
    MEROPE_CHECK(has_value(), std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  T&& value() && {
    MEROPE_CHECK(has_value(), std::get<1>(state_).message);
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    MEROPE_CHECK(!has_value(), "error() of a Result that holds a value");
    return std::get<1>(state_);
  }
  Error&& error() && {
    MEROPE_CHECK(!has_value(), "error() of a Result that holds a value");
    return std::get<1>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

// Result without a value. Status{} is success.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor): return error;

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Error& error() const& {
    MEROPE_CHECK(error_.has_value(), "error() of a successful Status");
    return *error_;
  }
  Error&& error() && {
    MEROPE_CHECK(error_.has_value(), "error() of a successful Status");
    return *std::move(error_);
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace merope

#define MEROPE_CONCAT_INNER(a, b) a##b
#define MEROPE_CONCAT(a, b) MEROPE_CONCAT_INNER(a, b)

// MEROPE_RETURN_IF_ERROR(expression): returns the error of a Status or Result from the enclosing function.
#define MEROPE_RETURN_IF_ERROR(expression)                       \
  do {                                                           \
    if (auto merope_status = (expression); !merope_status) {     \
      return std::move(merope_status).error();                   \
    }                                                            \
  } while (false)

// MEROPE_ASSIGN_OR_RETURN(declaration, expression): declares a variable from a Result's value, or returns its error.
#define MEROPE_ASSIGN_OR_RETURN(declaration, expression) \
  MEROPE_ASSIGN_OR_RETURN_INNER(MEROPE_CONCAT(merope_result_, __LINE__), declaration, expression)
#define MEROPE_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                          \
  if (!result) {                                                       \
    return std::move(result).error();                                  \
  }                                                                    \
  declaration = *std::move(result)
