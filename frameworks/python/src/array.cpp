#include "lending.h"

namespace tenon::python {
namespace {

nb::tuple shape_of(const std::vector<int64_t>& dims) {
  nb::list list;
  for (const int64_t size : dims) list.append(size);
  return nb::tuple(list);
}

}  // namespace

std::shared_ptr<const ArrayType> type_of(const Plugin& plugin, PJRT_Buffer* buffer) {
  auto type = sized<PJRT_Buffer_ElementType_Args>();
  type.buffer = buffer;
  plugin.call(&PJRT_Api::PJRT_Buffer_ElementType, type);
  auto shape = sized<PJRT_Buffer_Dimensions_Args>();
  shape.buffer = buffer;
  plugin.call(&PJRT_Api::PJRT_Buffer_Dimensions, shape);
  return array_type(info_of(type.type), {shape.dims, shape.num_dims});
}

Array::Array(Shared client, PJRT_Buffer* buffer, std::shared_ptr<const ArrayType> type)
    : client_(std::move(client)), buffer_(buffer), type_(std::move(type)) {}

Array::Array(Array&& other) noexcept
    : client_(std::move(other.client_)),
      buffer_(std::exchange(other.buffer_, nullptr)),
      type_(std::move(other.type_)) {}

Array::~Array() {
  if (buffer_ == nullptr) return;
  auto args = sized<PJRT_Buffer_Destroy_Args>();
  args.buffer = buffer_;
  client_->plugin().end(&PJRT_Api::PJRT_Buffer_Destroy, args);
}

bool Array::is_deleted() const {
  auto args = sized<PJRT_Buffer_IsDeleted_Args>();
  args.buffer = buffer_;
  client_->plugin().call(&PJRT_Api::PJRT_Buffer_IsDeleted, args);
  return args.is_deleted;
}

void Array::wait() const {
  auto args = sized<PJRT_Buffer_ReadyEvent_Args>();
  args.buffer = buffer_;
  client_->plugin().call(&PJRT_Api::PJRT_Buffer_ReadyEvent, args);
  {
    const nb::gil_scoped_release unlocked;
    client_->plugin().await(args.event);
  }
  let_go_of_lent_arrays();
}

void Array::remove() {
  auto args = sized<PJRT_Buffer_Delete_Args>();
  args.buffer = buffer_;
  client_->plugin().call(&PJRT_Api::PJRT_Buffer_Delete, args);
}

// Null if the host does not see it. Waits for the contents.
const void* Array::visible_memory() const {
  auto on_cpu = sized<PJRT_Buffer_IsOnCpu_Args>();
  on_cpu.buffer = buffer_;
  client_->plugin().call(&PJRT_Api::PJRT_Buffer_IsOnCpu, on_cpu);
  wait();
  if (!on_cpu.is_on_cpu || bytes() == 0) return nullptr;
  auto args = sized<PJRT_Buffer_UnsafePointer_Args>();
  args.buffer = buffer_;
  client_->plugin().call(&PJRT_Api::PJRT_Buffer_UnsafePointer, args);
  return reinterpret_cast<const void*>(args.buffer_pointer);
}

// Keeps the memory, though the array is deleted or donated.
nb::object Array::owner_of_memory() const {
  struct Owner {
    Shared client;
    PJRT_Buffer* buffer;
  };
  auto args = sized<PJRT_Buffer_IncreaseExternalReferenceCount_Args>();
  args.buffer = buffer_;
  client_->plugin().call(&PJRT_Api::PJRT_Buffer_IncreaseExternalReferenceCount, args);
  return nb::capsule(new Owner{client_, buffer_}, [](void* data) noexcept {
    const std::unique_ptr<Owner> owner(static_cast<Owner*>(data));
    auto end = sized<PJRT_Buffer_DecreaseExternalReferenceCount_Args>();
    end.buffer = owner->buffer;
    owner->client->plugin().end(&PJRT_Api::PJRT_Buffer_DecreaseExternalReferenceCount, end);
  });
}

nb::object Array::to_numpy(nb::handle self) const {
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object dtype = dtype_of(info());
  if (const void* memory = visible_memory()) {
    // The view keeps the Python object, and this the handle; the reference count keeps the memory.
    const nb::object owner = nb::make_tuple(nb::borrow(self), owner_of_memory());
    using Bytes = nb::ndarray<nb::numpy, nb::ro, uint8_t, nb::ndim<1>>;
    const size_t size[] = {static_cast<size_t>(bytes())};
    const nb::object flat = nb::cast(Bytes(static_cast<const uint8_t*>(memory), 1, size, owner));
    return flat.attr("view")(dtype).attr("reshape")(shape_of(dims()));
  }
  nb::object copy = numpy.attr("empty")(shape_of(dims()), dtype);
  if (bytes() == 0) return copy;
  const HostView host = host_array(copy, Hold::kObject);
  auto args = sized<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = buffer_;
  args.dst = const_cast<void*>(host.data);
  args.dst_size = static_cast<size_t>(bytes());
  client_->plugin().call(&PJRT_Api::PJRT_Buffer_ToHostBuffer, args);
  {
    const nb::gil_scoped_release unlocked;
    client_->plugin().await(args.event);
  }
  return copy;
}

nb::object Array::to_dlpack(nb::handle self) const {
  const nb::dlpack::dtype type = dlpack_type(info());
  const void* const memory = visible_memory();
  if (memory == nullptr && bytes() != 0) {
    throw nb::buffer_error("the host does not see the device's memory; take numpy.asarray(array)");
  }
  const std::vector<size_t> shape(dims().begin(), dims().end());
  const nb::object owner =
      bytes() == 0 ? nb::borrow(self) : nb::make_tuple(nb::borrow(self), owner_of_memory());
  static const std::byte kNothing = {};
  return nb::cast(nb::ndarray<nb::ro>(memory == nullptr ? &kNothing : memory, shape.size(),
                                      shape.data(), owner, nullptr, type, nb::device::cpu::value));
}

Array Array::copy_to(const ClientDevice& device) const {
  auto args = sized<PJRT_Buffer_CopyToDevice_Args>();
  args.buffer = buffer_;
  args.dst_device = device.client->device(device.index);
  client_->plugin().call(&PJRT_Api::PJRT_Buffer_CopyToDevice, args);
  return {client_, args.dst_buffer, type_};
}

Array put(const Shared& client, nb::handle object, size_t device, bool in_place) {
  let_go_of_lent_arrays();
  HostView host = host_array(object, in_place ? Hold::kMemory : Hold::kObject);
  PJRT_Device* const target = client->device(device);
  SentBuffer sent;
  {
    const nb::gil_scoped_release unlocked;
    sent = send(*client, host, target,
                in_place ? PJRT_HostBufferSemantics_kImmutableZeroCopy
                         : PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
  }
  Array array(client, sent.buffer, array_type(*host.info, host.dims));
  if (sent.done != nullptr) keep_until(*client, sent.done, host.owner);
  return array;
}

}  // namespace tenon::python
