// Call frames of XLA's FFI, from arrays and attributes of a call.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/foreign/host_functions.h"
#include "frameworks/pjrt/c_api/xla_ffi.h"

namespace tenon::pjrt {

/// Errors: kUnimplemented, for a type that the interface lacks.
Result<XLA_FFI_DataType> ffi_type_of(ElementType type);

/// Attributes, as long as it lives. Not to be moved.
class FfiAttributes {
 public:
  FfiAttributes() = default;
  FfiAttributes(const FfiAttributes&) = delete;
  FfiAttributes& operator=(const FfiAttributes&) = delete;

  /// `attributes` are in the order of their paths. Errors: those of ffi_type_of.
  Status add(std::span<const program::ForeignAttribute> attributes);
  /// Those that were added last.
  XLA_FFI_Attrs& view() { return view_; }

 private:
  Status add_value(const program::ForeignAttribute& attribute);
  Status add_dictionary(std::span<const program::ForeignAttribute> attributes, size_t depth);
  void add_name(std::string_view name);

  std::vector<XLA_FFI_AttrType> types_;
  std::vector<XLA_FFI_ByteSpan*> names_;
  std::vector<void*> values_;
  XLA_FFI_Attrs view_ = {};
  // The targets of the entries, in deques, whose elements stay where they are.
  std::deque<std::string> texts_;
  std::deque<XLA_FFI_ByteSpan> spans_;
  std::deque<Literal> literals_;
  std::deque<XLA_FFI_Scalar> scalars_;
  std::deque<XLA_FFI_Array> arrays_;
  std::deque<FfiAttributes> dictionaries_;
};

/// The arrays of one call, as long as it lives. Not to be moved.
class FfiArrays {
 public:
  FfiArrays() = default;
  FfiArrays(const FfiArrays&) = delete;
  FfiArrays& operator=(const FfiArrays&) = delete;

  /// Errors: those of ffi_type_of.
  Status add(const runtime::HostCallFrame& frame);
  XLA_FFI_Args arguments();
  XLA_FFI_Rets results();

 private:
  Status add_buffer(const Shape& shape, bool is_token, const std::byte* data,
                    std::vector<void*>& to);

  std::deque<XLA_FFI_Buffer> buffers_;
  std::deque<Dims> dims_;
  std::vector<void*> arguments_;
  std::vector<void*> results_;
  std::vector<XLA_FFI_ArgType> argument_types_;
  std::vector<XLA_FFI_RetType> result_types_;
};

}  // namespace tenon::pjrt
