// DLPack's exchange table: functions that a package gives for its own arrays, called without
// Python.
//
// A type names its table by `__dlpack_c_exchange_api__`, a capsule. This is the layout of DLPack
// 1.2 and 1.3, which only a new major version may change.
#pragma once

#include "types.h"

namespace tenon::python {

struct TensorVersion {
  uint32_t major = 0;
  uint32_t minor = 0;
};
inline constexpr uint32_t kTensorMajor = 1;

/// A tensor with its memory, which `deleter` frees along with this structure.
struct ManagedTensor {
  TensorVersion version;
  void* context = nullptr;
  void (*deleter)(ManagedTensor* self) = nullptr;
  uint64_t flags = 0;
  nb::dlpack::dltensor tensor;
};

/// The functions return 0, or -1 with an exception of Python.
struct ExchangeTable {
  TensorVersion version;
  const ExchangeTable* older = nullptr;  ///< The table of an older version, or null.
  int (*allocate)(nb::dlpack::dltensor* prototype, ManagedTensor** made, void* context,
                  void (*set_error)(void* context, const char* kind, const char* text));
  int (*to_managed)(void* object, ManagedTensor** made);
  int (*from_managed)(ManagedTensor* tensor, void** made);  ///< Takes the tensor.
  /// A tensor that is valid as long as the object is and does not change. May be null.
  int (*to_tensor)(void* object, nb::dlpack::dltensor* made);
  int (*work_stream)(int32_t device_type, int32_t device, void** stream);
};

/// The offer of an array's type.
struct ExchangeType {
  const ExchangeTable* table = nullptr;  ///< Null if it has none of a known version.
  /// Its arrays may be the conjugate or the negative of their memory (`is_conj`, `is_neg`), which
  /// no DLPack structure says.
  bool has_lazy_bits = false;
};

/// Asked once for each type. Needs Python's lock.
ExchangeType exchange_of(PyTypeObject* type);

/// An array in place, or a copy of it if it is not dense or not resolved. Without a value if the
/// type has no table, or the table cannot tell. `hold`: as for `host_array`.
std::optional<HostView> exchanged(nb::handle object, const ExchangeType& type, Hold hold);

/// The array itself, or a copy whose lazy bits are resolved. Throws TypeError if they cannot be.
nb::object resolved(nb::handle object);

}  // namespace tenon::python
