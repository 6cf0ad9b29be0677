// Element types: of the PJRT C API, of numpy, and of DLPack.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frameworks/pjrt/c_api/pjrt_c_api.h"

namespace tenon::python {

namespace nb = nanobind;

/// Text of a plug-in; bytes that are no UTF-8 are replaced.
nb::str text_of(std::string_view text);

struct TypeInfo {
  PJRT_Buffer_Type type = PJRT_Buffer_Type_INVALID;
  const char* name = "";  ///< In numpy, or in ml_dtypes.
  char kind = 0;          ///< The kind in numpy's array interface.
  int bytes = 0;          ///< One element on the host; those of less than a byte take one.
  int dlpack = -1;  ///< The type code of DLPack; -1 if it packs them otherwise, or lacks them.
};

/// Null for types that numpy and ml_dtypes lack.
const TypeInfo* find_info(PJRT_Buffer_Type type);
/// Throws TypeError for types that numpy and ml_dtypes lack.
const TypeInfo& info_of(PJRT_Buffer_Type type);
/// The dtype, an object of numpy.
nb::object dtype_of(const TypeInfo& info);

/// The type of an array. Arrays of one program share them.
struct ArrayType {
  const TypeInfo* info = nullptr;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  ///< In elements, row-major.
  int64_t bytes = 0;
};
std::shared_ptr<const ArrayType> array_type(const TypeInfo& info, std::span<const int64_t> dims);
int64_t bytes_of(const TypeInfo& info, std::span<const int64_t> dims);

/// An array of the host. The memory is valid as long as `owner` lives.
struct HostView {
  nb::object owner;
  const TypeInfo* info = nullptr;
  const void* data = nullptr;
  std::vector<int64_t> dims;
};
/// How an array's memory is kept while it is used.
enum class Hold {
  kObject,  ///< By its object, which does not change meanwhile. It costs least.
  kMemory,  ///< By a reference of its own, if there is one.
};
/// An object that numpy or DLPack can read, in row-major order: in place, or as a copy if it is
/// not. Throws TypeError for other types of elements.
HostView host_array(nb::handle object, Hold hold);

/// The type for DLPack. Throws BufferError for types that it lacks.
nb::dlpack::dtype dlpack_type(const TypeInfo& info);
/// Null for types that StableHLO lacks, or that DLPack packs otherwise than the plug-in.
const TypeInfo* find_dlpack(nb::dlpack::dtype type);

}  // namespace tenon::python
