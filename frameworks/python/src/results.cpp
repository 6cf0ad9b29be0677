#include "results.h"

#include <exception>
#include <new>

namespace tenon::python {

/// A tensor as its new owner gets it. The deleter may be called on any thread, without Python's
/// lock.
struct MadeTensor {
  MadeTensor(const Shared& client, std::shared_ptr<const ArrayType> type, PJRT_Buffer* buffer,
             TensorVersion version);
  ~MadeTensor();
  MadeTensor(const MadeTensor&) = delete;
  MadeTensor& operator=(const MadeTensor&) = delete;

  /// Begins the copy to the host, or the wait for the contents.
  void begin();
  /// Called when the contents are there.
  void finish();

  ManagedTensor managed;
  PJRT_Event* ready = nullptr;
  bool* is_gone = nullptr;  ///< Set by the deleter while the object is made.

 private:
  void end_buffer();

  Shared client_;
  std::shared_ptr<const ArrayType> type_;
  PJRT_Buffer* buffer_;
  std::byte* copy_ = nullptr;
};

namespace {

constexpr std::align_val_t kTensorAlignment{64};

void delete_tensor(ManagedTensor* self) {
  auto* const made = static_cast<MadeTensor*>(self->context);
  if (made->is_gone != nullptr) *made->is_gone = true;
  delete made;
}

}  // namespace

MadeTensor::MadeTensor(const Shared& client, std::shared_ptr<const ArrayType> type,
                       PJRT_Buffer* buffer, TensorVersion version)
    : client_(client), type_(std::move(type)), buffer_(buffer) {
  managed.version = version;
  managed.context = this;
  managed.deleter = delete_tensor;
  nb::dlpack::dltensor& tensor = managed.tensor;
  tensor.device.device_type = nb::device::cpu::value;
  tensor.ndim = static_cast<int32_t>(type_->dims.size());
  tensor.dtype = dlpack_type(*type_->info);
  tensor.shape = const_cast<int64_t*>(type_->dims.data());  // Readers do not write.
  tensor.strides = const_cast<int64_t*>(type_->strides.data());
}

MadeTensor::~MadeTensor() {
  end_buffer();
  if (copy_ != nullptr) ::operator delete[](copy_, kTensorAlignment);
}

void MadeTensor::end_buffer() {
  auto args = sized<PJRT_Buffer_Destroy_Args>();
  args.buffer = std::exchange(buffer_, nullptr);
  if (args.buffer != nullptr) client_->plugin().end(&PJRT_Api::PJRT_Buffer_Destroy, args);
}

void MadeTensor::begin() {
  const Plugin& plugin = client_->plugin();
  auto on_cpu = sized<PJRT_Buffer_IsOnCpu_Args>();
  on_cpu.buffer = buffer_;
  plugin.call(&PJRT_Api::PJRT_Buffer_IsOnCpu, on_cpu);
  if (on_cpu.is_on_cpu || type_->bytes == 0) {
    auto args = sized<PJRT_Buffer_ReadyEvent_Args>();
    args.buffer = buffer_;
    plugin.call(&PJRT_Api::PJRT_Buffer_ReadyEvent, args);
    ready = args.event;
    return;
  }
  const auto bytes = static_cast<size_t>(type_->bytes);
  copy_ = new (kTensorAlignment) std::byte[bytes];
  auto args = sized<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = buffer_;
  args.dst = copy_;
  args.dst_size = bytes;
  plugin.call(&PJRT_Api::PJRT_Buffer_ToHostBuffer, args);
  ready = args.event;
}

void MadeTensor::finish() {
  if (copy_ != nullptr || type_->bytes == 0) {
    managed.tensor.data = copy_;
    end_buffer();
    return;
  }
  auto args = sized<PJRT_Buffer_UnsafePointer_Args>();
  args.buffer = buffer_;
  client_->plugin().call(&PJRT_Api::PJRT_Buffer_UnsafePointer, args);
  managed.tensor.data = reinterpret_cast<void*>(args.buffer_pointer);
}

ResultBuffers::~ResultBuffers() {
  for (PJRT_Buffer* each : all_) {
    if (each == nullptr) continue;
    auto args = sized<PJRT_Buffer_Destroy_Args>();
    args.buffer = each;
    plugin_.end(&PJRT_Api::PJRT_Buffer_Destroy, args);
  }
}

HostResults::HostResults(const Shared& client, const ExchangeTable& table)
    : client_(client), table_(table) {}
HostResults::~HostResults() = default;

// Copies that have begun are awaited though another fails: they write into memory of this call.
void HostResults::fetch(ResultBuffers& buffers,
                        const std::vector<std::shared_ptr<const ArrayType>>& types) {
  std::exception_ptr failed;
  try {
    all_.reserve(buffers.size());
    for (size_t r = 0; r < buffers.size(); ++r) {
      all_.push_back(
          std::make_unique<MadeTensor>(client_, types[r], buffers.data()[r], table_.version));
      buffers.take(r);
      all_.back()->begin();
    }
  } catch (...) {
    failed = std::current_exception();
  }
  for (const auto& each : all_) {
    try {
      client_->plugin().await(std::exchange(each->ready, nullptr));
    } catch (const PluginError&) {
      if (failed == nullptr) failed = std::current_exception();
    }
  }
  if (failed != nullptr) std::rethrow_exception(failed);
  for (const auto& each : all_) each->finish();
}

nb::list HostResults::objects() {
  nb::list list;
  for (auto& each : all_) {
    bool is_gone = false;
    void* object = nullptr;
    MadeTensor* const made = each.release();
    made->is_gone = &is_gone;
    const int status = table_.from_managed(&made->managed, &object);
    const bool good = status == 0 && object != nullptr;
    if (!is_gone && good) made->is_gone = nullptr;
    if (!is_gone && !good) delete made;
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    if (!good) throw nb::type_error("a result could not be made an object of the wanted type");
    list.append(nb::steal(static_cast<PyObject*>(object)));
  }
  return list;
}

}  // namespace tenon::python
