// frameworks/torch/: the Python package `tenon-torch`, PyTorch on Tenon's devices.
// frameworks/torch/src/: its extension module, the device for PyTorch's C++ side.
//
// This file: memory, guard, hooks, views, autocast. An op's program is made in Python
// (tenon_torch/device/eager.py), and run again from here (plans.cpp).
//
// A storage of the device holds no memory of its own: it holds a Python object, the tenon.Array
// that was last written as the storage's whole contents (tenon_torch/device/storage.py). Its data
// pointer is an address that nobody reads.
//
// Thread-safety: as PyTorch's; the objects are touched with Python's lock.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>
#include <torch/version.h>

#include <atomic>
#include <memory>

#include "device.h"

namespace tenon::torch_device {
namespace {

std::atomic<int> device_count{1};
thread_local c10::DeviceIndex current_device = 0;

void drop(PyObject* object) {
  if (object == nullptr || Py_IsInitialized() == 0) return;
  const pybind11::gil_scoped_acquire locked;
  Py_DECREF(object);
}

void free_contents(void* data) {
  const std::unique_ptr<Contents> contents(static_cast<Contents*>(data));
  if (contents != nullptr) drop(contents->array);
}

class StorageAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t /*bytes*/) override {
    auto* const contents = new Contents();
    return {contents, contents, &free_contents, {kType, current_device}};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* /*to*/, const void* /*from*/, size_t /*bytes*/) const override {
    TORCH_CHECK(false, "tenon: memory of the device is not copied by address");
  }
};
StorageAllocator& allocator() {
  static auto* const only = new StorageAllocator();
  return *only;
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device getDevice() const override { return {kType, current_device}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() < device_count, "tenon: there is no device ", device.str(), " of ",
                device_count.load());
    uncheckedSetDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) current_device = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device.has_index() ? device : getDevice());
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return getStream(stream.device());
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(device_count.load());
  }
  void synchronizeDevice(c10::DeviceIndex /*device*/) const override {}
};

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count > 0; }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(device_count.load());
  }
  c10::DeviceIndex getCurrentDevice() const override { return current_device; }
  void setCurrentDevice(c10::DeviceIndex device) const override {
    Guard().setDevice({kType, device});
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return Guard().exchangeDevice({kType, device}).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? current_device : exchangeDevice(device);
  }
  /// Its numbers are seeds (tenon_torch.ops.random), so that one of the CPU serves.
  at::Generator getNewGenerator(c10::DeviceIndex /*device*/) const override {
    return at::detail::createCPUGenerator();
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return at::getCPUAllocator(); }
  /// Keeps what was written: reads take the bytes that there are, and zeros behind them.
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};

at::ScalarType type_or_default(std::optional<at::ScalarType> type) {
  return type.value_or(c10::typeMetaToScalarType(c10::get_default_dtype()));
}

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type,
                 std::optional<at::Layout> /*layout*/, std::optional<at::Device> device,
                 std::optional<bool> /*pinned*/, std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(size, &allocator(), kKeys, type_or_default(type), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
                         std::optional<at::Device> device, std::optional<bool> /*pinned*/) {
  const c10::OptionalDeviceGuard guard(device);
  return new_tensor(size, stride, type_or_default(type));
}

at::Tensor view(const at::Tensor& tensor, c10::SymIntArrayRef size) {
  return at::native::view(tensor, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor reshape_alias(const at::Tensor& tensor, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::as_strided_tensorimpl(tensor, size, stride, std::nullopt);
}

at::Tensor& set_storage(at::Tensor& tensor, at::Storage storage, int64_t offset,
                        at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::set_storage_cpu_(tensor, std::move(storage), offset, size, stride);
}

at::Tensor& set_whole_storage(at::Tensor& tensor, at::Storage storage) {
  const auto count = static_cast<int64_t>(storage.nbytes() / tensor.dtype().itemsize());
  return set_storage(tensor, std::move(storage), 0, {count}, {1});
}

at::Tensor& set_tensor(at::Tensor& tensor, const at::Tensor& source) {
  if (tensor.is_same(source)) return tensor;
  return tensor.set_(source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& set_nothing(at::Tensor& tensor) {
  const caffe2::TypeMeta type = tensor.dtype();
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, allocator().allocate(0), &allocator(),
                       true);
  tensor.set_(std::move(storage), 0, {0}, {});
  TORCH_INTERNAL_ASSERT(type == tensor.dtype());
  return tensor;
}

const at::Tensor& resize(const at::Tensor& tensor, c10::SymIntArrayRef size,
                         std::optional<at::MemoryFormat> format) {
  const at::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(size);
  const size_t bytes = at::detail::computeStorageNbytesContiguous(sizes, tensor.element_size(),
                                                                  tensor.storage_offset());
  if (bytes > tensor.storage().nbytes()) {
    tensor.storage().unsafeGetStorageImpl()->set_nbytes(bytes);
  }
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  if (format && *format != at::MemoryFormat::Preserve) {
    tensor.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return tensor;
}

pybind11::object array_of(const at::Tensor& tensor) {
  PyObject* const array = contents_of(tensor).array;
  return array == nullptr ? pybind11::object(pybind11::none())
                          : pybind11::reinterpret_borrow<pybind11::object>(array);
}

Dims shape_of(const pybind11::object& array) {
  Dims shape;
  for (const pybind11::handle dim : pybind11::tuple(array.attr("shape"))) {
    shape.push_back(dim.cast<int64_t>());
  }
  return shape;
}

void set_array(const at::Tensor& tensor, pybind11::object array) {
  Dims shape = shape_of(array);
  contents_of(tensor).hold(std::move(array), tensor.scalar_type(), std::move(shape));
}

/// False, and nothing is done, where the storage does not hold `before` any more.
bool replace_array(const at::Tensor& tensor, const pybind11::object& before,
                   pybind11::object array) {
  Dims shape = shape_of(array);
  Contents& contents = contents_of(tensor);
  if (contents.array != (before.is_none() ? nullptr : before.ptr())) return false;
  contents.hold(std::move(array), tensor.scalar_type(), std::move(shape));
  return true;
}

}  // namespace

void Contents::hold(pybind11::object next, at::ScalarType next_type, Dims next_shape) {
  type = next_type;
  shape = std::move(next_shape);
  PyObject* const before = std::exchange(array, next.release().ptr());
  Py_XDECREF(before);  // Last: it may run Python.
}

Contents& contents_of(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.device().type() == kType, "tenon: a tensor of ", tensor.device().str());
  void* const context = tensor.storage().data_ptr().get_context();
  TORCH_CHECK(context != nullptr, "tenon: a tensor without memory");
  return *static_cast<Contents*>(context);
}

at::Tensor new_tensor(at::IntArrayRef size, at::IntArrayRef stride, at::ScalarType type) {
  return at::detail::empty_strided_generic(size, stride, &allocator(), kKeys, type);
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", view);
  library.impl("view_as_real", at::native::view_as_real);
  library.impl("view_as_complex", at::native::view_as_complex);
  library.impl("_reshape_alias", reshape_alias);
  library.impl("set_.source_Storage_storage_offset", set_storage);
  library.impl("set_.source_Storage", set_whole_storage);
  library.impl("set_.source_Tensor", set_tensor);
  library.impl("set_", set_nothing);
  library.impl("resize_", resize);
}

// torch.autocast("tenon"): PyTorch's own lists say which ops take short floats, and which f32.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define TENON_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define TENON_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define TENON_SET_TYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define TENON_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(TENON_LOWER_PRECISION)
  AT_FORALL_FP32(TENON_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(TENON_SET_TYPE)
  AT_FORALL_PROMOTE(TENON_PROMOTE)
}

}  // namespace tenon::torch_device

PYBIND11_MODULE(_device, module) {
  using namespace tenon::torch_device;
  module.doc() = "Memory and views of torch.device(\"tenon\").";
  module.attr("torch_version") = TORCH_VERSION;
  module.def(
      "start",
      [](int devices) {
        device_count = devices;
        c10::SetAllocator(kType, &allocator());
        at::RegisterPrivateUse1HooksInterface(new Hooks());  // PyTorch keeps it for good.
      },
      "Registers the device with PyTorch, once.");
  bind_plans(module);
  module.def("array_of", &array_of, "The array that a tensor's storage holds, or None.");
  module.def("set_array", &set_array, "Replaces it.");
  module.def("replace_array", &replace_array,
             "Replaces it, if it is the one given; whether it was.");
  module.def("current_device", [] { return static_cast<int>(current_device); });
  module.def("set_device",
             [](int index) { Guard().setDevice({kType, static_cast<c10::DeviceIndex>(index)}); });
}
