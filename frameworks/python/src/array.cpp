#include <mutex>

#include "client.h"

namespace tenon::python {
namespace {

// Objects of Python that a plug-in has used up. Its threads do not have Python's lock: they leave
// them here, and the next call of Python lets go of them.
class UsedObjects {
 public:
  void add(PyObject* object) {
    const std::lock_guard lock(mutex_);
    objects_.push_back(object);
  }
  void let_go() {
    std::vector<PyObject*> objects;
    {
      const std::lock_guard lock(mutex_);
      objects.swap(objects_);
    }
    for (PyObject* each : objects) Py_DECREF(each);
  }

 private:
  std::mutex mutex_;
  std::vector<PyObject*> objects_;
};
UsedObjects& used_objects() {
  static auto* const used = new UsedObjects();  // Never destroyed: callbacks may come at exit.
  return *used;
}

struct Lent {
  PyObject* object = nullptr;
  std::shared_ptr<const Plugin> plugin;
  PJRT_Event* event = nullptr;
};

// Called by the plug-in, on a thread of its own, when it does not need the host's memory any more.
void give_back(PJRT_Error* error, void* data) {
  const std::unique_ptr<Lent> lent(static_cast<Lent*>(data));
  if (error != nullptr) {
    auto args = sized<PJRT_Error_Destroy_Args>();
    args.error = error;
    lent->plugin->destroy(args);
  }
  used_objects().add(lent->object);
  auto args = sized<PJRT_Event_Destroy_Args>();
  args.event = lent->event;
  lent->plugin->end(&PJRT_Api::PJRT_Event_Destroy, args);
}

int64_t count_of(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t size : dims) count *= size;
  return count;
}

nb::tuple shape_of(const std::vector<int64_t>& dims) {
  nb::list list;
  for (const int64_t size : dims) list.append(size);
  return nb::tuple(list);
}

}  // namespace

Array::Array(Shared client, PJRT_Buffer* buffer) : client_(std::move(client)), buffer_(buffer) {
  const Plugin& plugin = client_->plugin();
  auto type = sized<PJRT_Buffer_ElementType_Args>();
  type.buffer = buffer;
  plugin.call(&PJRT_Api::PJRT_Buffer_ElementType, type);
  info_ = &info_of(type.type);
  auto shape = sized<PJRT_Buffer_Dimensions_Args>();
  shape.buffer = buffer;
  plugin.call(&PJRT_Api::PJRT_Buffer_Dimensions, shape);
  dims_.assign(shape.dims, shape.dims + shape.num_dims);
}

Array::Array(Array&& other) noexcept
    : client_(other.client_),
      buffer_(std::exchange(other.buffer_, nullptr)),
      info_(other.info_),
      dims_(std::move(other.dims_)) {}

Array::~Array() {
  if (buffer_ == nullptr) return;
  auto args = sized<PJRT_Buffer_Destroy_Args>();
  args.buffer = buffer_;
  client_->plugin().end(&PJRT_Api::PJRT_Buffer_Destroy, args);
}

int64_t Array::bytes() const { return count_of(dims_) * info_->bytes; }

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
  used_objects().let_go();
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
  const nb::object dtype = dtype_of(*info_);
  if (const void* memory = visible_memory()) {
    // The view keeps the Python object, and this the handle; the reference count keeps the memory.
    const nb::object owner = nb::make_tuple(nb::borrow(self), owner_of_memory());
    using Bytes = nb::ndarray<nb::numpy, nb::ro, uint8_t, nb::ndim<1>>;
    const size_t size[] = {static_cast<size_t>(bytes())};
    const nb::object flat = nb::cast(Bytes(static_cast<const uint8_t*>(memory), 1, size, owner));
    return flat.attr("view")(dtype).attr("reshape")(shape_of(dims_));
  }
  nb::object copy = numpy.attr("empty")(shape_of(dims_), dtype);
  if (bytes() == 0) return copy;
  const HostView host = host_array(copy);
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
  const nb::dlpack::dtype type = dlpack_type(*info_);
  const void* const memory = visible_memory();
  if (memory == nullptr && bytes() != 0) {
    throw nb::buffer_error("the host does not see the device's memory; take numpy.asarray(array)");
  }
  const std::vector<size_t> shape(dims_.begin(), dims_.end());
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
  return {client_, args.dst_buffer};
}

void let_go_of_lent_arrays() { used_objects().let_go(); }

Array put(const Shared& client, nb::handle object, size_t device, bool in_place) {
  used_objects().let_go();
  HostView host = host_array(object);
  const Plugin& plugin = client->plugin();
  auto args = sized<PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = client->handle();
  args.data = host.data;
  args.type = host.info->type;
  args.dims = host.dims.data();
  args.num_dims = host.dims.size();
  args.host_buffer_semantics = in_place ? PJRT_HostBufferSemantics_kImmutableZeroCopy
                                        : PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args.device = client->device(device);
  {
    const nb::gil_scoped_release unlocked;
    plugin.call(&PJRT_Api::PJRT_Client_BufferFromHostBuffer, args);
  }
  Array array(client, args.buffer);
  if (args.done_with_host_buffer == nullptr) return array;
  auto* const lent =
      new Lent{host.owner.release().ptr(), client->shared_plugin(), args.done_with_host_buffer};
  auto ready = sized<PJRT_Event_OnReady_Args>();
  ready.event = lent->event;
  ready.callback = give_back;
  ready.user_arg = lent;
  plugin.call(&PJRT_Api::PJRT_Event_OnReady, ready);
  return array;
}

}  // namespace tenon::python
