// Buffers: creation, properties, deletion.
#include "frameworks/pjrt/entries/buffers.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/profile/profiled.h"
#include "frameworks/pjrt/types.h"

namespace tenon::pjrt {

PJRT_Buffer* make_buffer(std::shared_ptr<ClientState> client, PJRT_Memory* memory,
                         runtime::BufferPtr buffer) {
  auto made = std::make_unique<PJRT_Buffer>();
  made->client = std::move(client);
  made->memory = memory;
  made->set_rank(buffer->shape().dims().size());
  made->buffer = std::move(buffer);
  return made.release();
}

Result<runtime::BufferPtr> usable(const PJRT_Buffer& buffer) {
  if (buffer.given) TENON_TRY(buffer.given->await());
  return buffer.buffer;
}

Status check_client(const ClientState& client, const PJRT_Memory* memory) {
  if (std::ranges::find(client.memories, memory) != client.memories.end()) return {};
  return invalid_argument("the memory is one of another client");
}

Result<PJRT_Memory*> memory_of(const PJRT_Client* client, PJRT_Memory* memory,
                               PJRT_Device* device) {
  if (memory == nullptr && device != nullptr) memory = device->memories.front();
  if (memory == nullptr) return invalid_argument("neither a memory nor a device is named");
  TENON_TRY(check_client(*client->state, memory));
  return memory;
}

namespace {

// --- From the host

runtime::HostLifetime lifetime_of(PJRT_HostBufferSemantics semantics) {
  switch (semantics) {
    case PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes:
      return runtime::HostLifetime::kUntilCopied;
    case PJRT_HostBufferSemantics_kImmutableZeroCopy:
      return runtime::HostLifetime::kUntilDeleted;
    default:  // Copied at once, which is correct for each of them.
      return runtime::HostLifetime::kDuringCall;
  }
}

// Whether the elements may contain bits that are not part of their values. A dense array of pred
// rarely does; if it does not, it need not be copied.
bool needs_normal_form(const runtime::HostArray& array) {
  const ElementType type = array.shape.element_type();
  if (!is_pred(type)) return bit_width(type) < 8;
  if (array.byte_strides && *array.byte_strides != row_major_byte_strides(array.shape)) return true;
  const std::span bytes(array.data, static_cast<size_t>(array.shape.byte_size()));
  return std::ranges::any_of(bytes, [](std::byte byte) { return byte > std::byte{1}; });
}

// A copy of a small array, in memory of the host that the device reads as it lies. To copy it takes
// less time than to have the device do so, or to tell the caller, on another thread, that its own
// memory is used no more. Null: the array is long or has gaps, or the device takes no memory of the
// host.
runtime::BufferPtr small_copy(const std::shared_ptr<runtime::Device>& device,
                              runtime::MemoryKind kind, const runtime::HostArray& array) {
  constexpr size_t kMostBytes = 4096;
  constexpr size_t kAlignment = 64;
  const auto bytes = static_cast<size_t>(array.shape.byte_size());
  if (bytes == 0 || bytes > kMostBytes ||
      (array.byte_strides && *array.byte_strides != row_major_byte_strides(array.shape))) {
    return nullptr;
  }
  const std::shared_ptr<void> copy(
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment),
      std::free);
  if (copy == nullptr) return nullptr;
  std::memcpy(copy.get(), array.data, bytes);
  runtime::Promise gone;
  gone.event().on_ready([copy](const Status&) {});
  auto storage = runtime::import(device, kind, {static_cast<const std::byte*>(copy.get()), bytes},
                                 std::move(gone));
  if (!storage || storage->empty()) return nullptr;
  return std::make_shared<runtime::Buffer>(device, kind, array.shape, *std::move(storage),
                                           runtime::Event::ready());
}

Status from_host(PJRT_Client_BufferFromHostBuffer_Args& args) {
  const ProfiledWork work;
  TENON_ASSIGN(PJRT_Memory* const memory, memory_of(args.client, args.memory, args.device));
  runtime::HostArray array;
  TENON_ASSIGN(array.shape, shape_of(args.type, args.dims, args.num_dims));
  TENON_TRY(check_device_layout(array.shape, args.device_layout));
  array.data = static_cast<const std::byte*>(args.data);
  array.lifetime = lifetime_of(args.host_buffer_semantics);
  if (args.byte_strides != nullptr && args.num_byte_strides > 0) {
    array.byte_strides.emplace(args.byte_strides, args.byte_strides + args.num_byte_strides);
    if (args.num_byte_strides != args.num_dims) {
      return invalid_argument("{} strides of {} dimensions", args.num_byte_strides, args.num_dims);
    }
  }
  runtime::HostMemory normal;
  if (needs_normal_form(array)) {
    TENON_ASSIGN(normal, runtime::dense(array));
    normalize(array.shape.element_type(), *normal);
    array.data = normal->data();
    array.byte_strides.reset();
    array.lifetime = runtime::HostLifetime::kDuringCall;
  }
  TENON_ASSIGN(const auto device, unwrap(memory).device->live());
  runtime::FromHost made = {small_copy(device, unwrap(memory).kind, array),
                            runtime::Event::ready()};
  if (made.buffer == nullptr) {
    TENON_ASSIGN(made, runtime::buffer_from_host(device, unwrap(memory).kind, array));
  }
  work.until(made.buffer->defined(), *unwrap(memory).device, ProfileRow::kTransfers,
             "host to device", array.shape.byte_size());
  auto done = std::make_unique<PJRT_Event>(PJRT_Event{made.host_done});
  args.buffer = make_buffer(args.client->state, memory, std::move(made.buffer));
  args.done_with_host_buffer = done.release();
  return {};
}

// A buffer whose contents are not defined yet, or never will be.
Result<PJRT_Buffer*> without_contents(PJRT_Client* client, PJRT_Memory* memory, const Shape& shape,
                                      const char* what, runtime::Event defined) {
  TENON_ASSIGN(const auto device, unwrap(memory).device->live());
  TENON_ASSIGN(runtime::BufferStorage storage,
               runtime::allocate(*device, unwrap(memory).kind, shape.byte_size(),
                                 fmt::format("{} {}", what, shape.to_string())));
  return make_buffer(client->state, memory,
                     std::make_shared<runtime::Buffer>(device, unwrap(memory).kind, shape,
                                                       std::move(storage), std::move(defined)));
}

Status uninitialized(PJRT_Client_CreateUninitializedBuffer_Args& args) {
  TENON_ASSIGN(PJRT_Memory* const memory, memory_of(args.client, args.memory, args.device));
  TENON_ASSIGN(const Shape shape,
               shape_of(args.shape_element_type, args.shape_dims, args.shape_num_dims));
  TENON_TRY(check_device_layout(shape, args.shape_layout));
  TENON_ASSIGN(args.buffer, without_contents(args.client, memory, shape, "an uninitialized buffer",
                                             runtime::Event::ready()));
  return {};
}

Status error_buffer(PJRT_Client_CreateErrorBuffer_Args& args) {
  TENON_ASSIGN(PJRT_Memory* const memory, memory_of(args.client, args.memory, nullptr));
  TENON_ASSIGN(const Shape shape,
               shape_of(args.shape_element_type, args.shape_dims, args.shape_num_dims));
  Status error(code_of(args.error_code),
               std::string(view_of(args.error_message, args.error_message_size)));
  TENON_ASSIGN(args.buffer, without_contents(args.client, memory, shape, "an error buffer",
                                             runtime::Event::ready(std::move(error))));
  return {};
}

// Memory that the caller keeps until `on_delete_callback`, where the device takes it as it lies.
Status view(PJRT_Client_CreateViewOfDeviceBuffer_Args& args) {
  using Args = PJRT_Client_CreateViewOfDeviceBuffer_Args;
  PJRT_Memory* const named = has(args, &Args::memory) ? args.memory : nullptr;
  TENON_ASSIGN(PJRT_Memory* const memory, memory_of(args.client, named, args.device));
  TENON_ASSIGN(const Shape shape, shape_of(args.element_type, args.dims, args.num_dims));
  TENON_TRY(check_device_layout(shape, args.layout));
  const ElementType type = shape.element_type();
  if (bit_width(type) < 8 && !is_pred(type)) {
    return unimplemented("a view of {}, whose elements take a byte each", shape.to_string());
  }
  TENON_ASSIGN(const auto device, unwrap(memory).device->live());
  const auto* const data = static_cast<const std::byte*>(args.device_buffer_ptr);
  runtime::Promise gone(device->pool());
  const runtime::Event is_gone = gone.event();
  TENON_ASSIGN(runtime::BufferStorage storage,
               runtime::import(device, unwrap(memory).kind,
                               {data, static_cast<size_t>(shape.byte_size())}, std::move(gone)));
  if (storage.empty()) {
    return unimplemented("{} takes no view of memory that is not its own, or not of this address",
                         device->info().name);
  }
  args.buffer =
      make_buffer(args.client->state, memory,
                  std::make_shared<runtime::Buffer>(device, unwrap(memory).kind, shape,
                                                    std::move(storage), runtime::Event::ready()));
  if (args.on_delete_callback != nullptr) {
    is_gone.on_ready(
        [callback = args.on_delete_callback, pointer = args.device_buffer_ptr,
         user = args.on_delete_callback_arg](const Status&) { callback(pointer, user); });
  }
  return {};
}

// The same bytes as elements of another type. They are copied, so that neither array changes when
// the other is donated.
Status bitcast(PJRT_Buffer_Bitcast_Args& args) {
  const PJRT_Buffer& from = *args.buffer;
  TENON_ASSIGN(const Shape shape, shape_of(args.element_type, args.dims, args.num_dims));
  TENON_TRY(check_device_layout(shape, args.device_layout));
  const auto takes_whole_bytes = [](const Shape& each) {
    return bit_width(each.element_type()) >= 8 && !is_pred(each.element_type());
  };
  const Shape& before = from.buffer->shape();
  if (before.element_type() != shape.element_type() &&
      !(takes_whole_bytes(before) && takes_whole_bytes(shape))) {
    return unimplemented("a bitcast from {} to {}", before.to_string(), shape.to_string());
  }
  if (before.byte_size() != shape.byte_size()) {
    return invalid_argument("a bitcast from {} of {} bytes to {} of {}", before.to_string(),
                            before.byte_size(), shape.to_string(), shape.byte_size());
  }
  TENON_ASSIGN(const runtime::BufferPtr source, usable(from));
  const runtime::MemoryKind kind = unwrap(from.memory).kind;
  TENON_ASSIGN(const runtime::BufferPtr copy, source->copy_to(source->device(), kind));
  TENON_ASSIGN(runtime::BufferStorage storage, copy->storage());
  args.out_buffer = make_buffer(
      from.client, from.memory,
      std::make_shared<runtime::Buffer>(source->device(), kind, shape, std::move(storage),
                                        copy->defined(), copy->definer()));
  return {};
}

// --- Getters: they still answer after the buffer has been deleted or donated

Status destroy(PJRT_Buffer_Destroy_Args& args) {
  delete args.buffer;
  return {};
}

Status element_type(PJRT_Buffer_ElementType_Args& args) {
  args.type = buffer_type_of(args.buffer->buffer->shape().element_type());
  return {};
}

Status dimensions(PJRT_Buffer_Dimensions_Args& args) {
  args.dims = args.buffer->buffer->shape().dims().data();
  args.num_dims = args.buffer->buffer->shape().dims().size();
  return {};
}

Status unpadded_dimensions(PJRT_Buffer_UnpaddedDimensions_Args& args) {
  args.unpadded_dims = args.buffer->buffer->shape().dims().data();
  args.num_dims = args.buffer->buffer->shape().dims().size();
  return {};
}

Status dynamic_dimension_indices(PJRT_Buffer_DynamicDimensionIndices_Args& args) {
  args.dynamic_dim_indices = nullptr;
  args.num_dynamic_dims = 0;
  return {};
}

Status memory_layout(PJRT_Buffer_GetMemoryLayout_Args& args) {
  args.layout = {};
  args.layout.struct_size = sizeof(PJRT_Buffer_MemoryLayout);
  args.layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  args.layout.tiled.struct_size = sizeof(PJRT_Buffer_MemoryLayout_Tiled);
  const size_t rank = args.buffer->buffer->shape().dims().size();
  const int64_t* const shared = shared_row_major_order(rank);
  args.layout.tiled.minor_to_major = shared != nullptr ? shared : args.buffer->order.data();
  args.layout.tiled.minor_to_major_size = rank;
  return {};
}

Status on_device_size(PJRT_Buffer_OnDeviceSizeInBytes_Args& args) {
  args.on_device_size_in_bytes = static_cast<size_t>(args.buffer->buffer->shape().byte_size());
  return {};
}

Status device(PJRT_Buffer_Device_Args& args) {
  args.device = args.buffer->device();
  return {};
}

Status memory(PJRT_Buffer_Memory_Args& args) {
  args.memory = args.buffer->memory;
  return {};
}

Status remove(PJRT_Buffer_Delete_Args& args) {
  args.buffer->buffer->remove();
  return {};
}

Status is_deleted(PJRT_Buffer_IsDeleted_Args& args) {
  args.is_deleted = args.buffer->buffer->is_deleted();
  return {};
}

// If this is true, callers read the memory in place as elements in their own format, which packs
// types narrower than a byte.
Status is_on_cpu(PJRT_Buffer_IsOnCpu_Args& args) {
  const runtime::Buffer& buffer = *args.buffer->buffer;
  const ElementType type = buffer.shape().element_type();
  args.is_on_cpu = (bit_width(type) >= 8 || is_pred(type)) && buffer.is_host_visible();
  return {};
}

// Callers hold the buffer, ask for the address, and only then wait for the contents: the address is
// known earlier, and an error would leave the buffer held.
Status data_pointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args& args) {
  if (args.buffer->given) TENON_TRY(args.buffer->given->await());
  TENON_ASSIGN(const std::byte* const data, args.buffer->buffer->host_address());
  args.device_memory_ptr = const_cast<std::byte*>(data);
  return {};
}

// The caller does not wait for the contents afterwards.
Status unsafe_pointer(PJRT_Buffer_UnsafePointer_Args& args) {
  TENON_ASSIGN(const std::byte* const data, args.buffer->buffer->host_data());
  args.buffer_pointer = reinterpret_cast<uintptr_t>(data);
  return {};
}

Status ready_event(PJRT_Buffer_ReadyEvent_Args& args) {
  args.event = new PJRT_Event{args.buffer->buffer->defined()};
  return {};
}

Status increase_references(PJRT_Buffer_IncreaseExternalReferenceCount_Args& args) {
  return args.buffer->buffer->hold();
}

Status decrease_references(PJRT_Buffer_DecreaseExternalReferenceCount_Args& args) {
  args.buffer->buffer->release();
  return {};
}

}  // namespace

void add_buffers(PJRT_Api& api) {
  api.PJRT_Client_BufferFromHostBuffer = entry<from_host>;
  api.PJRT_Client_CreateUninitializedBuffer = entry<uninitialized>;
  api.PJRT_Client_CreateErrorBuffer = entry<error_buffer>;
  api.PJRT_Client_CreateViewOfDeviceBuffer = entry<view>;
  api.PJRT_Buffer_Destroy = entry<destroy>;
  api.PJRT_Buffer_ElementType = entry<element_type>;
  api.PJRT_Buffer_Dimensions = entry<dimensions>;
  api.PJRT_Buffer_UnpaddedDimensions = entry<unpadded_dimensions>;
  api.PJRT_Buffer_DynamicDimensionIndices = entry<dynamic_dimension_indices>;
  api.PJRT_Buffer_GetMemoryLayout = entry<memory_layout>;
  api.PJRT_Buffer_OnDeviceSizeInBytes = entry<on_device_size>;
  api.PJRT_Buffer_Device = entry<device>;
  api.PJRT_Buffer_Memory = entry<memory>;
  api.PJRT_Buffer_Delete = entry<remove>;
  api.PJRT_Buffer_IsDeleted = entry<is_deleted>;
  api.PJRT_Buffer_IsOnCpu = entry<is_on_cpu>;
  api.PJRT_Buffer_ReadyEvent = entry<ready_event>;
  api.PJRT_Buffer_IncreaseExternalReferenceCount = entry<increase_references>;
  api.PJRT_Buffer_DecreaseExternalReferenceCount = entry<decrease_references>;
  api.PJRT_Buffer_UnsafePointer = entry<unsafe_pointer>;
  api.PJRT_Buffer_OpaqueDeviceMemoryDataPointer = entry<data_pointer>;
  api.PJRT_Buffer_Bitcast = entry<bitcast>;
}

}  // namespace tenon::pjrt
