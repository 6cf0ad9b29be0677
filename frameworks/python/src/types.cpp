#include "exchange.h"

#include <array>
#include <string>

namespace tenon::python {
namespace {

constexpr TypeInfo kTypes[] = {
    {PJRT_Buffer_Type_PRED, "bool", 'b', 1, 6},
    {PJRT_Buffer_Type_S8, "int8", 'i', 1, 0},
    {PJRT_Buffer_Type_S16, "int16", 'i', 2, 0},
    {PJRT_Buffer_Type_S32, "int32", 'i', 4, 0},
    {PJRT_Buffer_Type_S64, "int64", 'i', 8, 0},
    {PJRT_Buffer_Type_U8, "uint8", 'u', 1, 1},
    {PJRT_Buffer_Type_U16, "uint16", 'u', 2, 1},
    {PJRT_Buffer_Type_U32, "uint32", 'u', 4, 1},
    {PJRT_Buffer_Type_U64, "uint64", 'u', 8, 1},
    {PJRT_Buffer_Type_F16, "float16", 'f', 2, 2},
    {PJRT_Buffer_Type_F32, "float32", 'f', 4, 2},
    {PJRT_Buffer_Type_F64, "float64", 'f', 8, 2},
    {PJRT_Buffer_Type_C64, "complex64", 'c', 8, 5},
    {PJRT_Buffer_Type_C128, "complex128", 'c', 16, 5},
    {PJRT_Buffer_Type_BF16, "bfloat16", 'V', 2, 4},
    {PJRT_Buffer_Type_S2, "int2", 'V', 1},
    {PJRT_Buffer_Type_S4, "int4", 'V', 1},
    {PJRT_Buffer_Type_U2, "uint2", 'V', 1},
    {PJRT_Buffer_Type_U4, "uint4", 'V', 1},
    {PJRT_Buffer_Type_F4E2M1FN, "float4_e2m1fn", 'V', 1},
    {PJRT_Buffer_Type_F6E2M3FN, "float6_e2m3fn", 'V', 1},
    {PJRT_Buffer_Type_F6E3M2FN, "float6_e3m2fn", 'V', 1},
    {PJRT_Buffer_Type_F8E3M4, "float8_e3m4", 'V', 1, 7},
    {PJRT_Buffer_Type_F8E4M3, "float8_e4m3", 'V', 1, 8},
    {PJRT_Buffer_Type_F8E4M3FN, "float8_e4m3fn", 'V', 1, 10},
    {PJRT_Buffer_Type_F8E4M3FNUZ, "float8_e4m3fnuz", 'V', 1, 11},
    {PJRT_Buffer_Type_F8E4M3B11FNUZ, "float8_e4m3b11fnuz", 'V', 1, 9},
    {PJRT_Buffer_Type_F8E5M2, "float8_e5m2", 'V', 1, 12},
    {PJRT_Buffer_Type_F8E5M2FNUZ, "float8_e5m2fnuz", 'V', 1, 13},
    {PJRT_Buffer_Type_F8E8M0FNU, "float8_e8m0fnu", 'V', 1, 14},
};

// numpy's array interface: what the capsule `__array_struct__` of an array points to.
struct ArrayInterface {
  int two;
  int nd;
  char typekind;
  int itemsize;
  int flags;
  Py_intptr_t* shape;
  Py_intptr_t* strides;
  void* data;
  PyObject* descr;
};
constexpr int kContiguous = 0x1, kAligned = 0x100, kNotSwapped = 0x200;

[[noreturn]] void fail(const std::string& text) { throw nb::type_error(text.c_str()); }

const TypeInfo* find(char kind, int bytes) {
  for (const TypeInfo& each : kTypes) {
    if (each.kind == kind && each.bytes == bytes && kind != 'V') return &each;
  }
  return nullptr;
}

const TypeInfo* find(const std::string& name) {
  for (const TypeInfo& each : kTypes) {
    if (name == each.name) return &each;
  }
  return nullptr;
}

// Types of ml_dtypes are told by their names. (Some builds of it have them as kind 'f'.)
const TypeInfo* type_of(const ArrayInterface& array, nb::handle object) {
  const TypeInfo* found = find(array.typekind, array.itemsize);
  if (found == nullptr || array.typekind == 'V') {
    found = find(nb::cast<std::string>(object.attr("dtype").attr("name")));
  }
  if (found == nullptr) {
    const nb::object dtype = object.attr("dtype");
    fail("arrays of " + std::string(nb::str(dtype).c_str()) + " have no element type of StableHLO");
  }
  return found;
}

nb::object numpy() { return nb::module_::import_("numpy"); }

// numpy gives a new capsule at each call. Without a value if the object has none.
std::optional<HostView> find_numpy(nb::object object) {
  static PyObject* const name = PyUnicode_InternFromString("__array_struct__");
  const nb::object capsule = nb::steal(PyObject_GetAttr(object.ptr(), name));
  if (!capsule.is_valid()) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nb::python_error();
    PyErr_Clear();
    return std::nullopt;
  }
  const auto* const array =
      static_cast<const ArrayInterface*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (array == nullptr) throw nb::python_error();
  constexpr int kWanted = kContiguous | kAligned | kNotSwapped;
  if ((array->flags & kWanted) != kWanted) {
    const nb::object native = object.attr("dtype").attr("newbyteorder")("=");
    return find_numpy(numpy().attr("require")(object, native, "CA"));
  }
  HostView host;
  host.info = type_of(*array, object);
  host.data = array->data;
  host.dims.assign(array->shape, array->shape + array->nd);
  host.owner = std::move(object);
  return host;
}

HostView of_numpy(nb::object object) {
  std::optional<HostView> host = find_numpy(std::move(object));
  if (!host) fail("an array of numpy has no __array_struct__");
  return *std::move(host);
}

// Arrays of other packages on the CPU: torch's bfloat16 is no type of numpy.
HostView of_dlpack(nb::handle object) {
  using View = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
  View view;
  if (!nb::try_cast<View>(object, view)) {
    return of_numpy(numpy().attr("ascontiguousarray")(object));
  }
  HostView host;
  host.info = find_dlpack(view.dtype());
  if (host.info == nullptr) fail("an array has an element type that StableHLO lacks");
  host.data = view.data();
  for (size_t i = 0; i < view.ndim(); ++i) host.dims.push_back(static_cast<int64_t>(view.shape(i)));
  host.owner = nb::cast(std::move(view));
  return host;
}

}  // namespace

nb::str text_of(std::string_view text) {
  PyObject* const decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(decoded);
}

const TypeInfo* find_info(PJRT_Buffer_Type type) {
  for (const TypeInfo& each : kTypes) {
    if (each.type == type) return &each;
  }
  return nullptr;
}

const TypeInfo& info_of(PJRT_Buffer_Type type) {
  if (const TypeInfo* const found = find_info(type)) return *found;
  fail("element type " + std::to_string(static_cast<int>(type)) + " has no dtype");
}

int64_t bytes_of(const TypeInfo& info, std::span<const int64_t> dims) {
  int64_t bytes = info.bytes;
  for (const int64_t size : dims) bytes *= size;
  return bytes;
}

std::shared_ptr<const ArrayType> array_type(const TypeInfo& info, std::span<const int64_t> dims) {
  auto type = std::make_shared<ArrayType>();
  type->info = &info;
  type->dims.assign(dims.begin(), dims.end());
  type->strides.resize(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    type->strides[i] = stride;
    stride *= dims[i];
  }
  type->bytes = bytes_of(info, dims);
  return type;
}

nb::object dtype_of(const TypeInfo& info) {
  const nb::object make = numpy().attr("dtype");
  if (info.kind != 'V') return make(info.name);
  return make(nb::module_::import_("ml_dtypes").attr(info.name));
}

HostView host_array(nb::handle object, Hold hold) {
  const ExchangeType type = exchange_of(Py_TYPE(object.ptr()));
  if (auto found = exchanged(object, type, hold)) return *std::move(found);
  const nb::object plain = type.has_lazy_bits ? resolved(object) : nb::borrow(object);
  if (auto found = find_numpy(plain)) return *std::move(found);
  if (nb::hasattr(plain, "__dlpack__")) return of_dlpack(plain);
  return of_numpy(numpy().attr("asarray")(plain));
}

nb::dlpack::dtype dlpack_type(const TypeInfo& info) {
  if (info.dlpack < 0) throw nb::buffer_error((std::string("DLPack has no ") + info.name).c_str());
  return {static_cast<uint8_t>(info.dlpack), static_cast<uint8_t>(8 * info.bytes), 1};
}

const TypeInfo* find_dlpack(nb::dlpack::dtype type) {
  for (const TypeInfo& each : kTypes) {
    if (each.dlpack == type.code && 8 * each.bytes == type.bits && type.lanes == 1) return &each;
  }
  return nullptr;
}

}  // namespace tenon::python
