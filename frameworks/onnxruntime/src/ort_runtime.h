// Calls of ONNX Runtime's functions, their errors as exceptions, and the way back.
#pragma once

#include <string>
#include <utility>

#include "core/base/status.h"
#include "frameworks/client/plugin.h"
#include "frameworks/onnxruntime/src/ort_api.h"

namespace tenon::ort {

/// An error on its way to ONNX Runtime. It never leaves the library: `OrtRuntime::guarded`.
struct OrtFailure {
  Status status;
};

/// Throws the error of a Result, or returns its value.
template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw OrtFailure{std::move(result.error())};
  return *std::move(result);
}
inline void throw_if_error(Status status) {
  if (!status.ok()) throw OrtFailure{std::move(status)};
}

/// ONNX Runtime's tables.
///
/// Thread-safety: everything, from any thread.
class OrtRuntime {
 public:
  OrtRuntime(const OrtApi* api, const OrtEpApi* ep_api) : api_(api), ep_api_(ep_api) {}

  /// Calls a function that returns OrtStatus*. Throws OrtFailure.
  template <class Slot, class... Args>
  void call(Args... args) const {
    if (OrtStatus* const status = get<Slot>(args...)) throw OrtFailure{taken(status)};
  }
  /// Calls a function that returns something else.
  template <class Slot, class... Args>
  auto get(Args... args) const {
    if constexpr (std::is_same_v<typename Slot::TableType, OrtApi>) {
      return Slot::call(api_, args...);
    } else {
      return Slot::call(ep_api_, args...);
    }
  }
  /// The list that a pair of functions gives: how many, then all of them.
  template <class Count, class Fill, class Item, class Object>
  std::vector<Item> list(const Object* object) const {
    size_t count = 0;
    call<Count>(object, &count);
    std::vector<Item> items(count);
    if (count > 0) call<Fill>(object, items.data(), count);
    return items;
  }
  template <class Slot, class Object>
  std::string text(const Object* object) const {
    const char* found = nullptr;
    call<Slot>(object, &found);
    return found == nullptr ? "" : found;
  }

  OrtStatus* status_of(const Status& status) const noexcept;
  /// Runs a function of the provider for ONNX Runtime: no exception passes.
  template <class Body>
  OrtStatus* guarded(const Body& body) const noexcept {
    try {
      body();
      return nullptr;
    } catch (const OrtFailure& failure) {
      return status_of(failure.status);
    } catch (const client::PluginError& error) {
      return status_of(Status(static_cast<ErrorCode>(error.code()), error.what()));
    } catch (const std::bad_alloc&) {
      return status_of(Status(ErrorCode::kResourceExhausted, "out of memory"));
    } catch (const std::exception& error) {
      return status_of(Status(ErrorCode::kInternal, error.what()));
    }
  }
  /// Writes to a logger, which may be null.
  void log(const OrtLogger* logger, OrtLoggingLevel level, const std::string& text) const noexcept;

 private:
  Status taken(OrtStatus* status) const;

  const OrtApi* api_;
  const OrtEpApi* ep_api_;
};

}  // namespace tenon::ort
