#include "exchange.h"

#include <unordered_map>

namespace tenon::python {
namespace {

constexpr char kCapsule[] = "dlpack_exchange_api";
constexpr uint8_t kComplex = 5;

const ExchangeTable* table_of(nb::handle type) {
  const nb::object capsule = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
  if (!PyCapsule_IsValid(capsule.ptr(), kCapsule)) return nullptr;
  const auto* table =
      static_cast<const ExchangeTable*>(PyCapsule_GetPointer(capsule.ptr(), kCapsule));
  while (table != nullptr && table->version.major != kTensorMajor) table = table->older;
  return table;
}

using Types = std::unordered_map<PyTypeObject*, ExchangeType>;
Types& known_types() {
  static auto* const types = new Types();  // Never destroyed: types may end after this library.
  return *types;
}

// Called when a type ends: another may get its address.
PyObject* forget(PyObject* key, PyObject* reference) {
  known_types().erase(static_cast<PyTypeObject*>(PyLong_AsVoidPtr(key)));
  Py_DECREF(reference);
  Py_RETURN_NONE;
}
PyMethodDef forget_method = {"forget", forget, METH_O, nullptr};

// Has `known_types` forget a type when it ends. The weak reference is its own owner until then.
void watch(PyTypeObject* type) {
  const nb::object key = nb::steal(PyLong_FromVoidPtr(type));
  const nb::object callback = nb::steal(PyCFunction_New(&forget_method, key.ptr()));
  if (!callback.is_valid()) throw nb::python_error();
  if (PyWeakref_NewRef(reinterpret_cast<PyObject*>(type), callback.ptr()) == nullptr) {
    throw nb::python_error();
  }
}

bool says_yes(nb::handle object, PyObject* method) {
  const nb::object answer = nb::steal(PyObject_CallMethodNoArgs(object.ptr(), method));
  if (!answer.is_valid()) throw nb::python_error();
  return answer.is(nb::bool_(true));
}

bool is_lazy(nb::handle object, bool is_complex) {
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  static PyObject* const is_conj = PyUnicode_InternFromString("is_conj");
  return says_yes(object, is_neg) || (is_complex && says_yes(object, is_conj));
}

// Frees a tensor that another package lent, with Python's lock.
nb::object owner_of(ManagedTensor* tensor) {
  return nb::capsule(tensor, [](void* data) noexcept {
    auto* const held = static_cast<ManagedTensor*>(data);
    if (held->deleter != nullptr) held->deleter(held);
  });
}

// Rows one behind the other; the stride of a dimension of one element counts nothing.
bool is_row_major(const nb::dlpack::dltensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t expected = 1;
  bool dense = true;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] == 0) return true;
    dense = dense && (tensor.shape[i] == 1 || tensor.strides[i] == expected);
    expected *= tensor.shape[i];
  }
  return dense;
}

struct ReadTensor {
  nb::dlpack::dltensor tensor;
  nb::object owner;
};

std::optional<ReadTensor> read(nb::handle object, const ExchangeTable& table, Hold hold) {
  ReadTensor read;
  if (hold == Hold::kObject && table.to_tensor != nullptr) {
    if (table.to_tensor(object.ptr(), &read.tensor) == 0) {
      read.owner = nb::borrow(object);
      return read;
    }
  } else {
    ManagedTensor* made = nullptr;
    if (table.to_managed(object.ptr(), &made) == 0 && made != nullptr) {
      read.owner = owner_of(made);
      if (made->version.major != kTensorMajor) return std::nullopt;
      read.tensor = made->tensor;
      return read;
    }
  }
  PyErr_Clear();  // The slower ways have errors for people.
  return std::nullopt;
}

// The same array by another object of its type, which a method of the first has made.
std::optional<ReadTensor> read_again(nb::handle object, const nb::object& made,
                                     const ExchangeTable& table, Hold hold) {
  if (Py_TYPE(made.ptr()) != Py_TYPE(object.ptr())) return std::nullopt;
  return read(made, table, hold);
}

}  // namespace

ExchangeType exchange_of(PyTypeObject* type) {
  Types& types = known_types();
  if (const auto found = types.find(type); found != types.end()) return found->second;
  const nb::handle object(reinterpret_cast<PyObject*>(type));
  ExchangeType made;
  made.table = table_of(object);
  made.has_lazy_bits = true;
  for (const char* name : {"is_neg", "is_conj", "resolve_neg", "resolve_conj"}) {
    made.has_lazy_bits = made.has_lazy_bits && nb::hasattr(object, name);
  }
  watch(type);
  types.emplace(type, made);
  return made;
}

nb::object resolved(nb::handle object) {
  if (!is_lazy(object, /*is_complex=*/true)) return nb::borrow(object);
  nb::object plain = object.attr("resolve_conj")().attr("resolve_neg")();
  if (is_lazy(plain, /*is_complex=*/true)) {
    throw nb::type_error("an array is a conjugate or a negative that cannot be resolved");
  }
  return plain;
}

std::optional<HostView> exchanged(nb::handle object, const ExchangeType& type, Hold hold) {
  if (type.table == nullptr) return std::nullopt;
  std::optional<ReadTensor> found = read(object, *type.table, hold);
  if (!found || found->tensor.device.device_type != nb::device::cpu::value) return std::nullopt;
  nb::object made;
  if (type.has_lazy_bits && is_lazy(object, found->tensor.dtype.code == kComplex)) {
    made = resolved(object);
    found = read_again(object, made, *type.table, hold);
  }
  if (found && !is_row_major(found->tensor) && nb::hasattr(object, "contiguous")) {
    made = (made.is_valid() ? nb::handle(made) : object).attr("contiguous")();
    found = read_again(object, made, *type.table, hold);
  }
  if (!found || !is_row_major(found->tensor)) return std::nullopt;
  const nb::dlpack::dltensor& tensor = found->tensor;
  HostView host;
  host.info = find_dlpack(tensor.dtype);
  if (host.info == nullptr) {
    throw nb::type_error("an array has an element type that StableHLO lacks");
  }
  host.dims.assign(tensor.shape, tensor.shape + tensor.ndim);
  host.data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  if (tensor.data == nullptr && bytes_of(*host.info, host.dims) != 0) {
    throw nb::type_error("an array has elements, but no memory");
  }
  host.owner = std::move(found->owner);
  return host;
}

}  // namespace tenon::python
