// core/base/: what every folder stands on: errors, files, archives, text scanning, hashes.
//
// Errors as values.
//
// Every fallible function of Tenon returns Status or Result<T>. A Status carries a code (the
// numbering of the PJRT C API, so that it crosses that boundary unchanged), a message that says
// what was found, what was expected and what to do, the position of the fault in the input if there
// is one, and the stage that reported it. Callers add context by `in_stage` and `at`; the function
// that reports the error never guesses it.
//
// Thread-safety: values; what copies share does not change.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace tenon {

/// Canonical error codes; the values are those of PJRT_Error_Code.
enum class ErrorCode : int {
  kOk = 0,
  kCancelled = 1,           ///< The caller cancelled the operation.
  kUnknown = 2,             ///< An external error that fits no other code.
  kInvalidArgument = 3,     ///< The input is wrong in any state of the system.
  kDeadlineExceeded = 4,    ///< A time limit was exceeded.
  kNotFound = 5,            ///< A named thing (file, function, device) does not exist.
  kAlreadyExists = 6,       ///< An object that should be created exists already.
  kPermissionDenied = 7,    ///< The caller lacks permission.
  kResourceExhausted = 8,   ///< Out of memory, or a bound on size or depth was reached.
  kFailedPrecondition = 9,  ///< Valid input, but the state of the system does not allow it.
  kAborted = 10,            ///< A concurrent event ended the operation.
  kOutOfRange = 11,         ///< Past the end of valid data.
  kUnimplemented = 12,      ///< Legal input that this build cannot handle.
  kInternal = 13,           ///< A broken invariant of Tenon itself: a bug.
  kUnavailable = 14,        ///< The device or service is gone; trying again may help.
  kDataLoss = 15,           ///< Unrecoverable corruption.
  kUnauthenticated = 16,
};

/// The code's name as the PJRT C API spells it, e.g. "INVALID_ARGUMENT".
std::string_view error_code_name(ErrorCode code);

/// A position in a source text; lines and columns count from 1, 0 means unknown.
struct SourcePosition {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;

  bool known() const { return line != 0; }
  bool operator==(const SourcePosition&) const = default;
};

/// The outcome of an operation without a value. As large as a pointer, which is null for success:
/// copies of an error share its text, and an error whose text finds no memory keeps its code alone.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message) noexcept;
  Status(const Status& other) noexcept : state_(other.state_) {
    if (has_details()) share();
  }
  Status(Status&& other) noexcept : state_(std::exchange(other.state_, 0)) {}
  Status& operator=(const Status& other) noexcept { return *this = Status(other); }
  Status& operator=(Status&& other) noexcept {
    if (this == &other) return *this;
    if (has_details()) release();
    state_ = std::exchange(other.state_, 0);
    return *this;
  }
  ~Status() {
    if (has_details()) release();
  }

  bool ok() const { return state_ == 0; }
  ErrorCode code() const { return ok() ? ErrorCode::kOk : error_code(); }
  /// Empty for success.
  const std::string& message() const;
  const SourcePosition& position() const;
  const std::string& stage() const;

  /// Sets the position if no position, or one without a line, is known yet: the innermost one wins.
  Status at(const SourcePosition& position) &&;
  /// Sets the stage ("import", "verify", "evaluate" …) if it is not set yet.
  Status in_stage(std::string_view stage) &&;
  /// Puts "context: " before the message.
  Status with_context(std::string_view context) &&;

  /// "file:line:column: error: message", without the position when it is unknown.
  std::string to_string() const;

  bool operator==(const Status& other) const;

 private:
  struct Details;

  bool has_details() const { return state_ != 0 && (state_ & 1) == 0; }
  const Details& details() const;
  /// Details that no copy shares; null without memory for them.
  Details* own_details() noexcept;
  ErrorCode error_code() const;
  void share() const noexcept;
  void release() const noexcept;

  /// 0 for success; 2 * code + 1 for an error without a text; else the address of Details.
  uintptr_t state_ = 0;
};

/// A value, or the error that prevented it.
template <class T>
using Result = tl::expected<T, Status>;

/// An error to return from a function whose result is Status or Result<T>.
class [[nodiscard]] Error {
 public:
  explicit Error(Status status) : status_(std::move(status)) {}
  Error at(const SourcePosition& position) && { return Error(std::move(status_).at(position)); }
  const Status& status() const { return status_; }

  operator Status() && { return std::move(status_); }
  template <class T>
  operator tl::expected<T, Status>() && {
    return tl::make_unexpected(std::move(status_));
  }

 private:
  Status status_;
};

namespace detail {
/// One function for all texts and types: callers are small, and the compiler lays them out of the
/// way.
[[gnu::cold]] Error format_error(ErrorCode code, fmt::string_view format, fmt::format_args args);
}  // namespace detail

template <class... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return detail::format_error(code, format, fmt::make_format_args(args...));
}
template <class... Args>
Error invalid_argument(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::kInvalidArgument, format, std::forward<Args>(args)...);
}
template <class... Args>
Error unimplemented(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::kUnimplemented, format, std::forward<Args>(args)...);
}
template <class... Args>
Error not_found(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::kNotFound, format, std::forward<Args>(args)...);
}
template <class... Args>
Error resource_exhausted(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::kResourceExhausted, format, std::forward<Args>(args)...);
}
template <class... Args>
Error failed_precondition(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::kFailedPrecondition, format, std::forward<Args>(args)...);
}
template <class... Args>
Error internal_error(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::kInternal, format, std::forward<Args>(args)...);
}

namespace detail {
inline Status take_status(Status&& status) { return std::move(status); }
template <class T>
Status take_status(tl::expected<T, Status>&& result) {
  return std::move(result.error());
}
inline bool has_failed(const Status& status) { return !status.ok(); }
template <class T>
bool has_failed(const tl::expected<T, Status>& result) {
  return !result.has_value();
}
}  // namespace detail

// Early return on error. These two are macros because a function cannot return from its caller.
#define TENON_CONCAT_INNER(a, b) a##b
#define TENON_CONCAT(a, b) TENON_CONCAT_INNER(a, b)
/// Evaluates a Status or Result expression and returns from the enclosing function if it is an
/// error.
#define TENON_TRY(expression)                                                               \
  do {                                                                                      \
    auto&& TENON_CONCAT(tenon_outcome_, __LINE__) = (expression);                           \
    if (::tenon::detail::has_failed(TENON_CONCAT(tenon_outcome_, __LINE__))) {              \
      return ::tenon::Error(                                                                \
          ::tenon::detail::take_status(std::move(TENON_CONCAT(tenon_outcome_, __LINE__)))); \
    }                                                                                       \
  } while (false)
/// Assigns the value of a Result expression to `target` (which may be a declaration), or returns
/// its error.
#define TENON_ASSIGN(target, expression) \
  TENON_ASSIGN_IMPL(TENON_CONCAT(tenon_result_, __LINE__), target, expression)
#define TENON_ASSIGN_IMPL(temporary, target, expression) \
  auto temporary = (expression);                         \
  if (!temporary.has_value()) {                          \
    return ::tenon::Error(std::move(temporary.error())); \
  }                                                      \
  target = std::move(*temporary)

}  // namespace tenon
