#include "core/base/status.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <new>

namespace tenon {

std::string_view error_code_name(ErrorCode code) {
  static constexpr std::array<std::string_view, 17> kNames = {"OK",
                                                              "CANCELLED",
                                                              "UNKNOWN",
                                                              "INVALID_ARGUMENT",
                                                              "DEADLINE_EXCEEDED",
                                                              "NOT_FOUND",
                                                              "ALREADY_EXISTS",
                                                              "PERMISSION_DENIED",
                                                              "RESOURCE_EXHAUSTED",
                                                              "FAILED_PRECONDITION",
                                                              "ABORTED",
                                                              "OUT_OF_RANGE",
                                                              "UNIMPLEMENTED",
                                                              "INTERNAL",
                                                              "UNAVAILABLE",
                                                              "DATA_LOSS",
                                                              "UNAUTHENTICATED"};
  const auto index = static_cast<size_t>(code);
  return index < kNames.size() ? kNames[index] : "UNKNOWN";
}

struct Status::Details {
  ErrorCode code;
  std::string message;
  SourcePosition position = {};
  std::string stage = {};
  mutable std::atomic<int> copies = 1;
};

Status::Status(ErrorCode code, std::string message) noexcept {
  if (code == ErrorCode::kOk) return;
  // The code where there is no text, or no memory for it.
  state_ = 2 * static_cast<uintptr_t>(code) + 1;
  if (message.empty()) return;
  if (const auto* details = new (std::nothrow) Details{code, std::move(message)}) {
    state_ = reinterpret_cast<uintptr_t>(details);
  }
}

const Status::Details& Status::details() const {
  // Takes no memory of the heap, which may be what lacks, and is never destroyed, since threads may
  // outlive the main function.
  alignas(Details) static std::byte room[sizeof(Details)];
  static const Details* const kNone = new (room) Details{ErrorCode::kOk, ""};
  return has_details() ? *reinterpret_cast<const Details*>(state_) : *kNone;
}

const std::string& Status::message() const { return details().message; }
const SourcePosition& Status::position() const { return details().position; }
const std::string& Status::stage() const { return details().stage; }

ErrorCode Status::error_code() const {
  return has_details() ? details().code : static_cast<ErrorCode>(state_ / 2);
}

void Status::share() const noexcept { ++details().copies; }

void Status::release() const noexcept {
  if (--details().copies == 0) delete &details();
}

Status::Details* Status::own_details() noexcept {
  auto* const shared = reinterpret_cast<Details*>(has_details() ? state_ : 0);
  if (shared != nullptr && shared->copies == 1) return shared;
  try {
    auto* const own = new Details{error_code(), message(), position(), stage()};
    if (shared != nullptr) release();
    state_ = reinterpret_cast<uintptr_t>(own);
    return own;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool Status::operator==(const Status& other) const {
  return state_ == other.state_ || (code() == other.code() && message() == other.message() &&
                                    position() == other.position() && stage() == other.stage());
}

Error detail::format_error(ErrorCode code, fmt::string_view format, fmt::format_args args) {
  return Error(Status(code, fmt::vformat(format, args)));
}

Status Status::at(const SourcePosition& position) && {
  const SourcePosition& known = this->position();
  const bool is_better = known.file.empty() || (position.known() && !known.known());
  if (ok() || !is_better) return std::move(*this);
  if (Details* const own = own_details()) own->position = position;
  return std::move(*this);
}

Status Status::in_stage(std::string_view stage) && {
  if (ok() || !this->stage().empty()) return std::move(*this);
  if (Details* const own = own_details()) own->stage = stage;
  return std::move(*this);
}

Status Status::with_context(std::string_view context) && {
  if (ok()) return std::move(*this);
  if (Details* const own = own_details()) {
    own->message = fmt::format("{}: {}", context, own->message);
  }
  return std::move(*this);
}

std::string Status::to_string() const {
  if (ok()) return "OK";
  const SourcePosition& position = this->position();
  if (!position.known()) {
    return position.file.empty() ? fmt::format("error: {}", message())
                                 : fmt::format("{}: error: {}", position.file, message());
  }
  if (position.column == 0) {
    return fmt::format("{}:{}: error: {}", position.file, position.line, message());
  }
  return fmt::format("{}:{}:{}: error: {}", position.file, position.line, position.column,
                     message());
}

}  // namespace tenon
