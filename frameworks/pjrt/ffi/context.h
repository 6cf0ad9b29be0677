// Behind the handles of XLA's FFI: errors, futures, and the context of a call.
//
// Thread-safety: types, futures and a context's memory: from any thread; a context's states: one
// stage at a time.
#pragma once

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "frameworks/pjrt/c_api/xla_ffi.h"

struct XLA_FFI_Error {
  tenon::ErrorCode code = {};
  std::string message;
};

struct XLA_FFI_Future {
  /// Waits until the handler has set it.
  tenon::Status await();
  void set(tenon::Status status);

 private:
  std::mutex mutex_;
  std::condition_variable is_set_;
  std::optional<tenon::Status> status_;
};

namespace tenon::pjrt {

struct ExecutionData;

/// The types of the states and data that handlers exchange with the host, by id.
class FfiTypes {
 public:
  using Deleter = void (*)(void*);
  static FfiTypes& instance();

  /// The id of a type, a new one if `id` is 0. A type that is added again with its id gets the
  /// new deleter. Errors: kAlreadyExists, if the name has another id, or the id another name.
  Result<int64_t> add(std::string_view name, int64_t id, Deleter deletes);
  /// Deletes an object of the type; null if the type says nothing about that.
  Deleter deleter(int64_t id) const;

 private:
  struct RegisteredType {
    int64_t id = 0;
    Deleter deleter = nullptr;
  };
  mutable std::mutex mutex_;
  std::map<std::string, RegisteredType, std::less<>> entries_;
};

/// An object of a registered type, which it owns.
class FfiState {
 public:
  FfiState() = default;
  ~FfiState() { reset(); }
  FfiState(const FfiState&) = delete;
  FfiState& operator=(const FfiState&) = delete;

  bool empty() const { return object_ == nullptr; }
  void set(int64_t type, void* object);
  void reset();
  int64_t type() const { return type_; }
  void* object() const { return object_; }

 private:
  int64_t type_ = 0;
  void* object_ = nullptr;
};

}  // namespace tenon::pjrt

struct XLA_FFI_ExecutionContext {
  /// Those of the stages before EXECUTE, by stage: the first belongs to the call of the program,
  /// the others to one execution.
  std::array<tenon::pjrt::FfiState*, 3> states = {};
  int64_t execution = 0;
  const tenon::pjrt::ExecutionData* given = nullptr;  ///< The caller's; null: none.
  int32_t device = 0;
  bool has_device = false;  ///< Not while a call is instantiated.

  XLA_FFI_ExecutionContext() = default;
  ~XLA_FFI_ExecutionContext();
  XLA_FFI_ExecutionContext(const XLA_FFI_ExecutionContext&) = delete;
  XLA_FFI_ExecutionContext& operator=(const XLA_FFI_ExecutionContext&) = delete;

  /// Memory of the host until the call ends. `alignment` is a power of two.
  void* allocate(size_t size, size_t alignment);
  /// Whether the memory was allocated here, and is freed now.
  bool free(void* data);

 private:
  std::mutex mutex_;
  std::map<void*, size_t> allocated_;  // With their alignments.
};

namespace tenon::pjrt {

/// The functions that handlers call; it stays for the process.
const XLA_FFI_Api& ffi_api();

/// The error, which it destroys, as a Status; OK for null.
Status take(XLA_FFI_Error* error);
/// An error for the caller to destroy; null for OK.
XLA_FFI_Error* ffi_error_of(const Status& status);

}  // namespace tenon::pjrt
