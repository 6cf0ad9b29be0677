// Buffers whose contents come later: those of transfer managers, aliases, and donations that wait.
#include "core/runtime/memory/late_buffer.h"

#include "frameworks/pjrt/entries/buffers.h"
#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/types.h"

/// Arrays of one memory that the caller fills piece by piece.
struct PJRT_AsyncHostToDeviceTransferManager {
  std::shared_ptr<tenon::pjrt::ClientState> client;
  PJRT_Memory* memory = nullptr;
  std::vector<std::shared_ptr<tenon::runtime::LateBuffer>> arrays;
  std::mutex mutex;
  std::vector<bool> retrieved;
};

/// Fills an alias, once.
struct PJRT_FulfillAliasBufferCallback {
  std::shared_ptr<tenon::runtime::LateBuffer> late;
};

namespace tenon::pjrt {
namespace {

using LateArray = std::shared_ptr<runtime::LateBuffer>;

Result<LateArray> late_array(PJRT_Memory* memory, const Shape& shape) {
  TENON_ASSIGN(const auto device, unwrap(memory).device->live());
  return runtime::LateBuffer::create(device, unwrap(memory).kind, shape);
}

PJRT_Buffer* make_late(std::shared_ptr<ClientState> client, PJRT_Memory* memory,
                       const LateArray& late) {
  PJRT_Buffer* const made = make_buffer(std::move(client), memory, late->buffer());
  made->given = late->given();
  return made;
}

// --- Transfer managers

Status create_manager(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args& args) {
  TENON_ASSIGN(PJRT_Memory* const memory, memory_of(args.client, args.memory, nullptr));
  auto manager = std::make_unique<PJRT_AsyncHostToDeviceTransferManager>();
  manager->client = args.client->state;
  manager->memory = memory;
  for (size_t i = 0; i < args.num_shape_specs; ++i) {
    const PJRT_ShapeSpec& spec = args.shape_specs[i];
    TENON_ASSIGN(const Shape shape, shape_of(spec.element_type, spec.dims, spec.num_dims));
    if (args.device_layouts != nullptr && i < args.num_device_layouts) {
      TENON_TRY(check_device_layout(shape, args.device_layouts[i]));
    }
    TENON_ASSIGN(LateArray late, late_array(memory, shape));
    manager->arrays.push_back(std::move(late));
  }
  manager->retrieved.resize(manager->arrays.size());
  args.transfer_manager = manager.release();
  return {};
}

// Arrays that lack pieces get an error.
Status destroy_manager(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args& args) {
  delete args.transfer_manager;
  return {};
}

Result<runtime::LateBuffer*> array_of(const PJRT_AsyncHostToDeviceTransferManager& manager,
                                      int index) {
  if (index >= 0 && static_cast<size_t>(index) < manager.arrays.size()) {
    return manager.arrays[static_cast<size_t>(index)].get();
  }
  return invalid_argument("buffer {} of a transfer manager of {}", index, manager.arrays.size());
}

bool is_normal(ElementType type) { return bit_width(type) >= 8 && !is_pred(type); }

Status transfer_data(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args& args) {
  TENON_ASSIGN(runtime::LateBuffer* const late,
               array_of(*args.transfer_manager, args.buffer_index));
  if (args.transfer_size < 0) return invalid_argument("a piece of {} bytes", args.transfer_size);
  std::span<const std::byte> bytes(static_cast<const std::byte*>(args.data),
                                   static_cast<size_t>(args.transfer_size));
  const ElementType type = late->buffer()->shape().element_type();
  runtime::HostMemory kept;
  if (!is_normal(type)) {
    TENON_ASSIGN(kept, runtime::host_memory(args.transfer_size, "a piece of an array"));
    std::ranges::copy(bytes, kept->begin());
    normalize(type, *kept);
    bytes = *kept;
  }
  auto event = std::make_unique<PJRT_Event>(PJRT_Event{runtime::Event::ready()});
  TENON_ASSIGN(event->event, late->write(bytes, args.offset, args.is_last_transfer, kept));
  args.done_with_h2d_transfer = event.release();
  return {};
}

// A whole array, in a layout of the host.
Status transfer_literal(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args& args) {
  TENON_ASSIGN(runtime::LateBuffer* const late,
               array_of(*args.transfer_manager, args.buffer_index));
  runtime::HostArray array;
  TENON_ASSIGN(array.shape,
               shape_of(args.shape_element_type, args.shape_dims, args.shape_num_dims));
  if (array.shape != late->buffer()->shape()) {
    return invalid_argument("an array of {} for one of {}", array.shape.to_string(),
                            late->buffer()->shape().to_string());
  }
  TENON_ASSIGN(array.byte_strides, host_strides(array.shape, args.shape_layout));
  array.data = static_cast<const std::byte*>(args.data);
  TENON_ASSIGN(const runtime::HostMemory kept, runtime::dense(array));
  normalize(array.shape.element_type(), *kept);
  auto event = std::make_unique<PJRT_Event>(PJRT_Event{runtime::Event::ready()});
  TENON_ASSIGN(event->event, late->write(*kept, 0, true, kept));
  args.done_with_h2d_transfer = event.release();
  return {};
}

// Once for each array.
Status retrieve_buffer(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args& args) {
  PJRT_AsyncHostToDeviceTransferManager& manager = *args.transfer_manager;
  TENON_TRY(array_of(manager, args.buffer_index).map([](auto*) {}));
  const auto index = static_cast<size_t>(args.buffer_index);
  const std::lock_guard lock(manager.mutex);
  if (manager.retrieved[index]) {
    return failed_precondition("buffer {} has been retrieved", index);
  }
  args.buffer_out = make_late(manager.client, manager.memory, manager.arrays[index]);
  manager.retrieved[index] = true;
  return {};
}

Status manager_device(PJRT_AsyncHostToDeviceTransferManager_Device_Args& args) {
  args.device_out = unwrap(args.transfer_manager->memory).device;
  return {};
}

Status buffer_count(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args& args) {
  args.buffer_count = args.transfer_manager->arrays.size();
  return {};
}

Status buffer_size(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args& args) {
  TENON_ASSIGN(const runtime::LateBuffer* const late,
               array_of(*args.transfer_manager, args.buffer_index));
  args.buffer_size = static_cast<size_t>(late->buffer()->shape().byte_size());
  return {};
}

Status set_buffer_error(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args& args) {
  TENON_ASSIGN(runtime::LateBuffer* const late,
               array_of(*args.transfer_manager, args.buffer_index));
  const auto code =
      args.error_code == PJRT_Error_Code_OK ? PJRT_Error_Code_UNKNOWN : args.error_code;
  late->fail(status_of(code, args.error_message, args.error_message_size));
  return {};
}

// Hints, which have no effect.
Status add_metadata(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args&) { return {}; }

// --- Aliases

Status create_alias(PJRT_Client_CreateAliasBuffer_Args& args) {
  TENON_ASSIGN(PJRT_Memory* const memory, memory_of(args.client, args.memory, nullptr));
  TENON_ASSIGN(const Shape shape,
               shape_of(args.shape_element_type, args.shape_dims, args.shape_num_dims));
  TENON_TRY(check_device_layout(shape, args.shape_layout));
  TENON_ASSIGN(LateArray late, late_array(memory, shape));
  auto fulfill = std::make_unique<PJRT_FulfillAliasBufferCallback>();
  args.alias_buffer = make_late(args.client->state, memory, late);
  fulfill->late = std::move(late);
  args.fulfill_alias_buffer_cb = fulfill.release();
  return {};
}

// The callback is used up, also after an error. The alias is a copy, so that neither array changes
// when the other is donated.
Status fulfill_alias(PJRT_Client_FulfillAliasBuffer_Args& args) {
  const std::unique_ptr<PJRT_FulfillAliasBufferCallback> callback(args.fulfill_alias_buffer_cb);
  Status status = status_of(args.status_code, args.error_message, args.error_message_size);
  if (!status.ok()) {
    callback->late->fail(std::move(status));
    return {};
  }
  if (args.buffer == nullptr) return invalid_argument("neither a buffer nor an error is given");
  TENON_ASSIGN(const runtime::BufferPtr source, usable(*args.buffer));
  return callback->late->fill(*source);
}

// --- Donations that wait

struct WaitingDonation {
  runtime::BufferPtr source;
  LateArray late;
};

void let_go(PJRT_Buffer_DonateWithControlDependency_Callback_Args* args) {
  const std::unique_ptr<WaitingDonation> waiting(
      static_cast<WaitingDonation*>(args->callback_data));
  try {
    Status status = status_of(args->error_code, args->error_message, args->error_message_size);
    if (status.ok()) status = waiting->late->fill(*waiting->source);
    if (!status.ok()) waiting->late->fail(std::move(status));
  } catch (const std::exception&) {  // The array gets an error as it is destroyed.
  }
}

// The buffer is gone at once, and its contents become those of another one when the caller says
// that what they depend on has happened.
Status donate_later(PJRT_Buffer_DonateWithControlDependency_Args& args) {
  const PJRT_Buffer& from = *args.buffer;
  TENON_ASSIGN(const runtime::BufferPtr donated, usable(from));
  TENON_ASSIGN(LateArray late, late_array(from.memory, donated->shape()));
  auto waiting = std::make_unique<WaitingDonation>();
  TENON_ASSIGN(runtime::BufferStorage storage, donated->storage());
  waiting->source =
      std::make_shared<runtime::Buffer>(donated->device(), donated->memory_kind(), donated->shape(),
                                        std::move(storage), donated->defined(), donated->definer());
  args.out_buffer = make_late(from.client, from.memory, late);
  waiting->late = std::move(late);
  args.callback_data = waiting.release();
  args.dependency_ready_callback = &let_go;
  donated->remove();
  return {};
}

}  // namespace

void add_late_buffers(PJRT_Api& api) {
  api.PJRT_Client_CreateBuffersForAsyncHostToDevice = entry<create_manager>;
  api.PJRT_AsyncHostToDeviceTransferManager_Destroy = entry<destroy_manager>;
  api.PJRT_AsyncHostToDeviceTransferManager_TransferData = entry<transfer_data>;
  api.PJRT_AsyncHostToDeviceTransferManager_TransferLiteral = entry<transfer_literal>;
  api.PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer = entry<retrieve_buffer>;
  api.PJRT_AsyncHostToDeviceTransferManager_Device = entry<manager_device>;
  api.PJRT_AsyncHostToDeviceTransferManager_BufferCount = entry<buffer_count>;
  api.PJRT_AsyncHostToDeviceTransferManager_BufferSize = entry<buffer_size>;
  api.PJRT_AsyncHostToDeviceTransferManager_SetBufferError = entry<set_buffer_error>;
  api.PJRT_AsyncHostToDeviceTransferManager_AddMetadata = entry<add_metadata>;
  api.PJRT_Client_CreateAliasBuffer = entry<create_alias>;
  api.PJRT_Client_FulfillAliasBuffer = entry<fulfill_alias>;
  api.PJRT_Buffer_DonateWithControlDependency = entry<donate_later>;
}

}  // namespace tenon::pjrt
