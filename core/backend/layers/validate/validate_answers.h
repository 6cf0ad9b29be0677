// The answers of a device to the layer `validate`: whether the device is lost, and errors found by
// calls that return no status. Part of validate_device.cpp.
#pragma once

#include <atomic>
#include <mutex>
#include <type_traits>
#include <utility>

#include "core/backend/layers/validate/validate_device.h"

namespace tenon::backend {

/// Thread-safety: everything, from any thread.
class Answers {
 protected:
  // Keeps an error found by a function without a result; the next call returns it.
  void note(Status status) {
    const std::lock_guard lock(noted_mutex_);
    if (noted_.ok()) noted_ = std::move(status);
  }
  Status noted() {
    const std::lock_guard lock(noted_mutex_);
    return std::exchange(noted_, Status());
  }

  // A call of the backend, whose answer says whether the device is lost, and stays lost (B12).
  template <class Call>
  std::invoke_result_t<Call> check_answer(std::string_view function, const Call& call) {
    const bool lost = lost_;
    auto result = call();
    Status status;
    if constexpr (std::is_same_v<decltype(result), Status>) {
      status = result;
    } else if (!result) {
      status = result.error();
    }
    if (status.code() == ErrorCode::kUnavailable) {
      lost_ = true;
    } else if (lost && status.code() != ErrorCode::kUnimplemented) {  // Function not offered.
      return Error(
          rule_violation("B12", "{} answers '{}' on a lost device", function, status.to_string()));
    }
    return result;
  }

  std::atomic<bool> lost_ = false;

 private:
  std::mutex noted_mutex_;
  Status noted_;
};

}  // namespace tenon::backend
