#include "frameworks/pjrt/entries/host_transfers.h"

#include <condition_variable>
#include <cstring>
#include <mutex>

#include "core/runtime/foreign/host_functions.h"
#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/ffi/execution_data.h"
#include "frameworks/pjrt/objects.h"
#include "hlo/builder/builder.h"

namespace tenon::pjrt {
namespace {

constexpr const char* kSendTarget = "tenon.send_to_host";
constexpr const char* kReceiveTarget = "tenon.receive_from_host";
constexpr const char* kChannel = "channel";

/// The bytes of a receive, which the caller adds.
struct ReceivedBytes {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::byte> bytes;
  size_t count = 0;
  bool is_abandoned = false;  // The caller has destroyed the stream.

  bool is_complete() const { return count == bytes.size(); }
};

}  // namespace
}  // namespace tenon::pjrt

struct PJRT_CopyToDeviceStream {
  std::shared_ptr<tenon::pjrt::ReceivedBytes> received;
};

namespace tenon::pjrt {

// --- The program

namespace {

Status replace(hlo::Instruction& op) {
  const bool is_send = op.code() == hlo::OpCode::kSend;
  if ((is_send ? op.operand_count() : op.result_count()) != 2) {
    return unimplemented("{} of several arrays at once", op.name());
  }
  const auto* channel = op.attr<hlo::ChannelHandle>(hlo::AttrKey::channel_handle);
  hlo::Builder builder(*op.parent(), &op);
  builder.set_location(op.location());
  hlo::Instruction* const call = builder.create(
      hlo::OpCode::kCustomCall, op.operands(),
      {{hlo::AttrKey::call_target_name, std::string(is_send ? kSendTarget : kReceiveTarget)},
       {hlo::AttrKey::has_side_effect, true}},
      op.result_types());
  if (call == nullptr) return builder.status();
  hlo::Dict attributes;
  attributes.emplace_back(kChannel, hlo::IntegerAttr{channel->handle, ElementType::kS64});
  call->mutable_discardable().emplace_back("mhlo.backend_config", std::move(attributes));
  for (uint32_t r = 0; r < op.result_count(); ++r) op.replace_uses(r, {call, r});
  op.parent()->erase(&op);
  return {};
}

bool is_host_transfer(const hlo::Instruction& op) {
  const bool transfers = op.code() == hlo::OpCode::kSend || op.code() == hlo::OpCode::kRecv;
  return transfers && op.flag(hlo::AttrKey::is_host_transfer);
}

void collect(hlo::Computation& computation, std::vector<hlo::Instruction*>& transfers) {
  for (hlo::Instruction& op : computation) {
    for (size_t r = 0; r < op.region_count(); ++r) collect(op.region(r), transfers);
    if (is_host_transfer(op)) transfers.push_back(&op);
  }
}

}  // namespace

Status replace_host_transfers(hlo::Module& module) {
  std::vector<hlo::Instruction*> transfers;
  for (const auto& function : module.functions()) collect(*function, transfers);
  for (hlo::Instruction* op : transfers) TENON_TRY(replace(*op));
  return {};
}

// --- The functions of the host

namespace {

Result<int64_t> channel_of(const program::ForeignCall& foreign) {
  for (const program::ForeignAttribute& attribute : foreign.attributes) {
    const auto* number = std::get_if<Literal>(&attribute.value);
    if (attribute.path == kChannel && number != nullptr && number->element_count() == 1) {
      return number->get_integer(0);
    }
  }
  return invalid_argument("a transfer with the host without a channel");
}

template <class Info>
Result<Info> callback_of(const runtime::HostCallFrame& frame, int64_t channel,
                         std::map<int64_t, Info> ExecutionData::* callbacks, const char* what) {
  const auto* data = static_cast<const ExecutionData*>(frame.origin.context);
  if (data != nullptr) {
    const auto found = (data->*callbacks).find(channel);
    if (found != (data->*callbacks).end()) return found->second;
  }
  return failed_precondition("the execution has no callback for the {} on channel {}", what,
                             channel);
}

PJRT_Error* callback_error(PJRT_Error_Code code, const char* message, size_t size) {
  return error_of(status_of(code, message, size));
}

// The callback owns the bytes.
Status send(const runtime::HostCallFrame& frame, int64_t channel) {
  TENON_ASSIGN(const PJRT_SendCallbackInfo info,
               callback_of(frame, channel, &ExecutionData::sends, "send"));
  if (frame.operands.empty()) return invalid_argument("a send of nothing");
  const std::span<const std::byte> bytes = frame.operands[0].bytes;
  auto copy = std::make_unique<std::byte[]>(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  PJRT_Chunk chunk = {};
  chunk.size = bytes.size();
  chunk.deleter = [](void* data, void*) { delete[] static_cast<std::byte*>(data); };
  chunk.data = copy.release();
  PJRT_CallbackError make_error = &callback_error;
  return take_error(info.send_callback(&chunk, &make_error, bytes.size(), true, info.user_arg));
}

// The callback, or a thread that it gives the stream to, adds the bytes; the execution waits.
Status receive(const runtime::HostCallFrame& frame, int64_t channel) {
  TENON_ASSIGN(const PJRT_RecvCallbackInfo info,
               callback_of(frame, channel, &ExecutionData::receives, "receive"));
  if (frame.results.empty()) return invalid_argument("a receive of nothing");
  const std::span<std::byte> result = frame.results[0].bytes;
  const auto received = std::make_shared<ReceivedBytes>();
  received->bytes.resize(result.size());
  auto stream = std::make_unique<PJRT_CopyToDeviceStream>(PJRT_CopyToDeviceStream{received});
  info.recv_callback(stream.release(), info.user_arg);
  std::unique_lock lock(received->mutex);
  received->changed.wait(lock, [&] { return received->is_complete() || received->is_abandoned; });
  if (!received->is_complete()) {
    return Status(ErrorCode::kCancelled,
                  fmt::format("the caller gave {} of the {} bytes that are received on channel {}",
                              received->count, result.size(), channel));
  }
  if (!result.empty()) std::memcpy(result.data(), received->bytes.data(), result.size());
  return {};
}

runtime::HostFunction on_channel(Status (*run)(const runtime::HostCallFrame&, int64_t)) {
  return [run](const program::CustomCall&,
               const program::ForeignCall& foreign) -> Result<runtime::HostCall> {
    TENON_ASSIGN(const int64_t channel, channel_of(foreign));
    return [run, channel](const runtime::HostCallFrame& frame) { return run(frame, channel); };
  };
}

// --- Streams

Status stream_destroy(PJRT_CopyToDeviceStream_Destroy_Args& args) {
  const std::unique_ptr<PJRT_CopyToDeviceStream> owned(args.stream);
  if (owned == nullptr) return {};
  const std::lock_guard lock(owned->received->mutex);
  owned->received->is_abandoned = true;
  owned->received->changed.notify_all();
  return {};
}

// Copies the chunk, and gives it back at once.
Status add_chunk(PJRT_CopyToDeviceStream_AddChunk_Args& args) {
  const PJRT_Chunk chunk = *args.chunk;
  ReceivedBytes& received = *args.stream->received;
  Status status;
  {
    const std::lock_guard lock(received.mutex);
    if (chunk.size > received.bytes.size() - received.count) {
      status =
          Status(invalid_argument("a chunk of {} bytes, {} of {} are missing", chunk.size,
                                  received.bytes.size() - received.count, received.bytes.size()));
    } else if (chunk.size > 0) {
      std::memcpy(received.bytes.data() + received.count, chunk.data, chunk.size);
      received.count += chunk.size;
    }
    received.changed.notify_all();
  }
  if (chunk.deleter != nullptr) chunk.deleter(chunk.data, chunk.deleter_arg);
  TENON_TRY(std::move(status));
  args.transfer_complete = new PJRT_Event{runtime::Event::ready()};
  return {};
}

Status total_bytes(PJRT_CopyToDeviceStream_TotalBytes_Args& args) {
  args.total_bytes = static_cast<int64_t>(args.stream->received->bytes.size());
  return {};
}

Status granule_size(PJRT_CopyToDeviceStream_GranuleSize_Args& args) {
  args.granule_size_in_bytes = 1;
  return {};
}

Status current_bytes(PJRT_CopyToDeviceStream_CurrentBytes_Args& args) {
  const std::lock_guard lock(args.stream->received->mutex);
  args.current_bytes = static_cast<int64_t>(args.stream->received->count);
  return {};
}

}  // namespace

void add_host_transfers(PJRT_Api& api) {
  runtime::HostFunctions& all = runtime::HostFunctions::instance();
  static_cast<void>(all.add(kPlatformName, kSendTarget, on_channel(&send)));
  static_cast<void>(all.add(kPlatformName, kReceiveTarget, on_channel(&receive)));
  api.PJRT_CopyToDeviceStream_Destroy = entry<stream_destroy>;
  api.PJRT_CopyToDeviceStream_AddChunk = entry<add_chunk>;
  api.PJRT_CopyToDeviceStream_TotalBytes = entry<total_bytes>;
  api.PJRT_CopyToDeviceStream_GranuleSize = entry<granule_size>;
  api.PJRT_CopyToDeviceStream_CurrentBytes = entry<current_bytes>;
}

}  // namespace tenon::pjrt
