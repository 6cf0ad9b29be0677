// Copies of buffers: to the host, to other memories, in pieces.
#include "frameworks/pjrt/entries/buffers.h"
#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/types.h"

namespace tenon::pjrt {
namespace {

Status to_host(PJRT_Buffer_ToHostBuffer_Args& args) {
  const runtime::BufferPtr& buffer = args.src->buffer;
  TENON_ASSIGN(const Dims strides, host_strides(buffer->shape(), args.host_layout));
  if (args.dst == nullptr) {
    TENON_ASSIGN(const int64_t extent, runtime::extent_of(buffer->shape(), strides));
    args.dst_size = static_cast<size_t>(extent);
    return {};
  }
  const auto bytes = static_cast<size_t>(buffer->shape().byte_size());
  if (args.dst_size < bytes) {
    return invalid_argument("{} has {} bytes, there is room for {}", buffer->shape().to_string(),
                            bytes, args.dst_size);
  }
  if (buffer->is_deleted()) {
    return failed_precondition("the buffer of {} has been deleted or donated",
                               buffer->shape().to_string());
  }
  auto* const to = static_cast<std::byte*>(args.dst);
  auto event = std::make_unique<PJRT_Event>(PJRT_Event{runtime::Event::ready()});
  event->event = buffer->copy_to_host({to, args.dst_size}, strides);
  args.event = event.release();
  return {};
}

Result<PJRT_Buffer*> copy_to(PJRT_Buffer* buffer, PJRT_Memory* memory) {
  TENON_TRY(check_client(*buffer->client, memory));
  TENON_ASSIGN(const auto device, unwrap(memory).device->live());
  TENON_ASSIGN(runtime::BufferPtr copy, buffer->buffer->copy_to(device, unwrap(memory).kind));
  return make_buffer(buffer->client, memory, std::move(copy));
}

Status copy_to_device(PJRT_Buffer_CopyToDevice_Args& args) {
  TENON_ASSIGN(args.dst_buffer, copy_to(args.buffer, args.dst_device->memories.front()));
  return {};
}

Status copy_to_memory(PJRT_Buffer_CopyToMemory_Args& args) {
  TENON_ASSIGN(args.dst_buffer, copy_to(args.buffer, args.dst_memory));
  return {};
}

}  // namespace

void add_transfers(PJRT_Api& api) {
  api.PJRT_Buffer_ToHostBuffer = entry<to_host>;
  api.PJRT_Buffer_CopyToDevice = entry<copy_to_device>;
  api.PJRT_Buffer_CopyToMemory = entry<copy_to_memory>;
  api.PJRT_Buffer_CopyRawToHost = refuse<"Buffer_CopyRawToHost is not supported">;
  api.PJRT_Buffer_CopyRawToHostFuture = refuse<"Buffer_CopyRawToHostFuture is not supported">;
  api.PJRT_CopyToDeviceStream_Destroy = refuse<"CopyToDeviceStream: recv is not supported">;
  api.PJRT_CopyToDeviceStream_AddChunk = refuse<"CopyToDeviceStream: recv is not supported">;
  api.PJRT_CopyToDeviceStream_TotalBytes = refuse<"CopyToDeviceStream: recv is not supported">;
  api.PJRT_CopyToDeviceStream_GranuleSize = refuse<"CopyToDeviceStream: recv is not supported">;
  api.PJRT_CopyToDeviceStream_CurrentBytes = refuse<"CopyToDeviceStream: recv is not supported">;
  // There are no transfer managers, so none of their functions is ever called correctly.
  api.PJRT_Client_CreateBuffersForAsyncHostToDevice =
      refuse<"Client_CreateBuffersForAsyncHostToDevice is not supported">;
  api.PJRT_AsyncHostToDeviceTransferManager_Destroy =
      refuse<"AsyncHostToDeviceTransferManager is not supported">;
  api.PJRT_AsyncHostToDeviceTransferManager_TransferData =
      refuse<"AsyncHostToDeviceTransferManager is not supported">;
  api.PJRT_AsyncHostToDeviceTransferManager_TransferLiteral =
      refuse<"AsyncHostToDeviceTransferManager is not supported">;
  api.PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer =
      refuse<"AsyncHostToDeviceTransferManager is not supported">;
  api.PJRT_AsyncHostToDeviceTransferManager_Device =
      refuse<"AsyncHostToDeviceTransferManager is not supported">;
  api.PJRT_AsyncHostToDeviceTransferManager_BufferCount =
      refuse<"AsyncHostToDeviceTransferManager is not supported">;
  api.PJRT_AsyncHostToDeviceTransferManager_BufferSize =
      refuse<"AsyncHostToDeviceTransferManager is not supported">;
  api.PJRT_AsyncHostToDeviceTransferManager_SetBufferError =
      refuse<"AsyncHostToDeviceTransferManager is not supported">;
  api.PJRT_AsyncHostToDeviceTransferManager_AddMetadata =
      refuse<"AsyncHostToDeviceTransferManager is not supported">;
}

}  // namespace tenon::pjrt
