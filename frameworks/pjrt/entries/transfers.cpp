// Copies of buffers: to the host, whole and in part, and to other memories.
#include "frameworks/pjrt/entries/buffers.h"
#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/profile/profiled.h"
#include "frameworks/pjrt/types.h"

namespace tenon::pjrt {
namespace {

// The event of a copy, which begins once the array has been handed over.
template <class Copy>
std::unique_ptr<PJRT_Event> copy_when_given(const PJRT_Buffer& buffer, Copy copy) {
  auto event = std::make_unique<PJRT_Event>(PJRT_Event{runtime::Event::ready()});
  if (!buffer.given || buffer.given->is_ready()) {
    event->event = copy();
    return event;
  }
  const auto done = std::make_shared<runtime::Promise>(buffer.buffer->device()->pool());
  event->event = done->event();
  buffer.given->on_ready([done, copy = std::move(copy)](const Status&) {
    copy().on_ready([done](const Status& status) { done->set(status); });
  });
  return event;
}

Status to_host(PJRT_Buffer_ToHostBuffer_Args& args) {
  const ProfiledWork work;
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
  const std::span to(static_cast<std::byte*>(args.dst), args.dst_size);
  args.event = copy_when_given(*args.src, [buffer, to, strides] {
                 return buffer->copy_to_host(to, strides);
               }).release();
  work.until(args.event->event, *unwrap(args.src->memory).device, ProfileRow::kTransfers,
             "device to host", buffer->shape().byte_size());
  return {};
}

// --- Bytes as they lie

Status check_part(const PJRT_Buffer& buffer, int64_t offset, int64_t size) {
  const Shape& shape = buffer.buffer->shape();
  if (offset < 0 || size < 0 || offset > shape.byte_size() || size > shape.byte_size() - offset) {
    return invalid_argument("{} bytes at {} of {}, which has {}", size, offset, shape.to_string(),
                            shape.byte_size());
  }
  if (!buffer.buffer->is_deleted()) return {};
  return failed_precondition("the buffer of {} has been deleted or donated", shape.to_string());
}

Status copy_raw(PJRT_Buffer_CopyRawToHost_Args& args) {
  const ProfiledWork work;
  TENON_TRY(check_part(*args.buffer, args.offset, args.transfer_size));
  const std::span to(static_cast<std::byte*>(args.dst), static_cast<size_t>(args.transfer_size));
  args.event =
      copy_when_given(*args.buffer, [buffer = args.buffer->buffer, to, offset = args.offset] {
        return buffer->copy_part_to_host(to, offset);
      }).release();
  work.until(args.event->event, *unwrap(args.buffer->memory).device, ProfileRow::kTransfers,
             "device to host", args.transfer_size);
  return {};
}

// A copy whose destination the caller names later.
struct LaterCopy {
  runtime::BufferPtr buffer;
  std::optional<runtime::Event> given;
  int64_t offset = 0;
  size_t size = 0;
  std::shared_ptr<runtime::Promise> done;

  void run(std::byte* to) const {
    const auto copy = [copied = *this, to](const Status& status) {
      if (!status.ok()) return copied.done->set(status);
      copied.buffer->copy_part_to_host({to, copied.size}, copied.offset)
          .on_ready([done = copied.done](const Status& outcome) { done->set(outcome); });
    };
    given.value_or(runtime::Event::ready()).on_ready(copy);
  }
};

// The caller calls it once.
void name_destination(PJRT_Buffer_CopyRawToHostFuture_Callback_Args* args) {
  const std::unique_ptr<LaterCopy> later(static_cast<LaterCopy*>(args->callback_data));
  try {
    Status status = status_of(args->error_code, args->error_message, args->error_message_size);
    if (!status.ok()) return later->done->set(std::move(status));
    later->run(static_cast<std::byte*>(args->dst));
  } catch (const std::exception&) {
    later->done->set(Status(ErrorCode::kResourceExhausted, ""));
  }
}

Status copy_raw_later(PJRT_Buffer_CopyRawToHostFuture_Args& args) {
  TENON_TRY(check_part(*args.buffer, args.offset, args.transfer_size));
  const runtime::BufferPtr& buffer = args.buffer->buffer;
  auto later = std::make_unique<LaterCopy>(
      LaterCopy{buffer, args.buffer->given, args.offset, static_cast<size_t>(args.transfer_size),
                std::make_shared<runtime::Promise>(buffer->device()->pool())});
  args.event = new PJRT_Event{later->done->event()};
  args.callback_data = later.release();
  args.future_ready_callback = &name_destination;
  return {};
}

Result<PJRT_Buffer*> copy_to(PJRT_Buffer* buffer, PJRT_Memory* memory) {
  const ProfiledWork work;
  TENON_TRY(check_client(*buffer->client, memory));
  TENON_ASSIGN(const auto device, unwrap(memory).device->live());
  TENON_ASSIGN(const runtime::BufferPtr source, usable(*buffer));
  TENON_ASSIGN(runtime::BufferPtr copy, source->copy_to(device, unwrap(memory).kind));
  work.until(copy->defined(), *unwrap(memory).device, ProfileRow::kTransfers, "copy",
             copy->shape().byte_size());
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
  api.PJRT_Buffer_CopyRawToHost = entry<copy_raw>;
  api.PJRT_Buffer_CopyRawToHostFuture = entry<copy_raw_later>;
}

}  // namespace tenon::pjrt
