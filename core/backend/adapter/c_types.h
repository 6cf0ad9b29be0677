// Conversions of TargetInfo, codes and texts to and from the types of plugin.h. Internal to the
// adapter.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "core/backend/backend.h"
#include "core/backend/plugin.h"

namespace tenon::backend {

/// Reads a member of a foreign struct if the struct's size covers it (B1).
template <class Struct, class Member>
Member member_or(const Struct& from, Member Struct::* member, Member fallback) {
  const auto* begin = reinterpret_cast<const char*>(&from);
  const auto* end = reinterpret_cast<const char*>(&(from.*member) + 1);
  return static_cast<size_t>(end - begin) <= from.size ? from.*member : fallback;
}

/// Calls `read` for each element of an array that another release may have written, whose structs
/// may have another size (B1).
template <class Struct, class Read>
Status each_of(const Struct* array, size_t count, const Read& read) {
  const auto* at = reinterpret_cast<const char*>(array);
  for (size_t i = 0; array != nullptr && i < count; ++i) {
    const auto& element = *reinterpret_cast<const Struct*>(at);
    constexpr size_t kMost = 4096;
    if (element.size < sizeof(size_t) || element.size > kMost ||
        element.size % alignof(Struct) != 0) {
      return failed_precondition("B1: an element of an array states a size of {}", element.size);
    }
    TENON_TRY(read(element));
    at += element.size;
  }
  return {};
}

/// The type's name as a C string that lives forever.
inline const char* c_name_of(ElementType type) {
  return name_of(type).data();  // NOLINT(bugprone-suspicious-stringview-data-usage): a literal
}

/// Collects the text that is written to a sink.
class SinkText {
 public:
  SinkText() : sink_{sizeof(TenonSink), this, &write} {}
  SinkText(const SinkText&) = delete;
  SinkText& operator=(const SinkText&) = delete;

  const TenonSink* sink() const { return &sink_; }
  /// Whether the host had memory for the whole text.
  bool whole() const { return whole_; }
  std::string take() { return std::move(text_); }

 private:
  static void write(void* context, const char* bytes, size_t count) noexcept {
    auto& self = *static_cast<SinkText*>(context);
    try {
      self.text_.append(bytes, count);
    } catch (const std::exception&) {  // A plug-in calls it; no exception may reach it (B5).
      self.whole_ = false;
    }
  }
  std::string text_;
  bool whole_ = true;
  TenonSink sink_;
};

void write(const TenonSink* sink, std::string_view text);

/// Writes the message to the sink and returns the code.
TenonCode to_code(const Status& status, const TenonSink* error);
/// OK, or an error with that code, of the plug-in's function of that name; an unknown code becomes
/// kUnknown.
Status status_of(TenonCode code, SinkText& text, std::string_view function);

/// A TargetInfo as a C struct, with the arrays and names that it refers to.
class CTarget {
 public:
  explicit CTarget(const TargetInfo& target);
  CTarget(const CTarget&) = delete;
  CTarget& operator=(const CTarget&) = delete;
  const TenonTargetInfo* get() const { return &info_; }

 private:
  const TargetInfo target_;
  std::string tuning_;
  std::vector<TenonTypeInfo> types_;
  std::vector<TenonMathInfo> math_;
  std::vector<TenonSpaceInfo> spaces_;
  TenonTargetInfo info_{};
};

/// Errors: unknown names.
Result<TargetInfo> target_of(const TenonTargetInfo& info);

TenonPlace c_place(const MemoryAddress& place);
MemoryAddress place_of(const TenonPlace& place);

}  // namespace tenon::backend

/// Library calls and segments as plug-ins see them.
struct TenonCall {
  const tenon::backend::LibraryCallSite* site = nullptr;

  struct CallDescription;
  mutable std::once_flag described;
  mutable std::shared_ptr<const CallDescription> description;
};
struct TenonSegment {
  const tenon::program::Program* program = nullptr;
};

/// A kernel as plug-ins see it: a handle for the host's services.
struct TenonKernel {
  const tenon::kernel::Kernel* kernel = nullptr;

  struct KernelDescription;
  /// Created by the first `describe`; lives as long as the handle.
  mutable std::once_flag described;
  mutable std::shared_ptr<const KernelDescription> description;
};
