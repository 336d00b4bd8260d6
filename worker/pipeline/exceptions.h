// The border between ATen, which throws, and the rest of the house, which does not.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace merope::worker {

// Runs a function that returns a Result and turns what it throws into an error: no memory is kResourceExhausted; an error of
// the device itself is kUnavailable, because a CUDA context that has failed once fails for ever and only a new process
// helps; the rest is kInternal. `what` names the action ("loading models/wan").
template <typename Function>
auto errors_from_exceptions(const std::string& what, Function&& function) -> decltype(function()) {
  try {
    return std::forward<Function>(function)();
  } catch (const c10::OutOfMemoryError& error) {
    return Error{ErrorCode::kResourceExhausted, what + ": out of device memory: " + error.what_without_backtrace()};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kResourceExhausted, what + ": out of memory"};
  } catch (const c10::AcceleratorError& error) {
    return Error{ErrorCode::kUnavailable, what + ": the device failed: " + error.what_without_backtrace()};
  } catch (const c10::Error& error) {
    return Error{ErrorCode::kInternal, what + ": " + error.what_without_backtrace()};
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInternal, what + ": " + error.what()};
  }
}

}  // namespace merope::worker
