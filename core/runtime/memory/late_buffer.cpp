#include "core/runtime/memory/late_buffer.h"

#include <cstring>

namespace tenon::runtime {

void LateBuffer::Progress::end_one(const Status& status) {
  Status last;
  {
    const std::lock_guard lock(mutex);
    if (outcome.ok() && !status.ok()) outcome = status;
    if (--parts > 0) return;
    last = outcome;
  }
  defined.set(std::move(last));
}

Result<std::shared_ptr<LateBuffer>> LateBuffer::create(const std::shared_ptr<Device>& device,
                                                       MemoryKind kind, const Shape& shape) {
  TENON_ASSIGN(
      BufferStorage storage,
      allocate(*device, kind, shape.byte_size(),
               fmt::format("an array in pieces {}", shape.to_string()), QueueRole::kUpload));
  auto progress = std::make_shared<Progress>(device->pool());
  std::shared_ptr<LateBuffer> made(new LateBuffer(device, storage, progress));
  made->buffer_ =
      std::make_shared<Buffer>(device, kind, shape, std::move(storage), progress->defined.event());
  return made;
}

LateBuffer::~LateBuffer() {
  try {
    fail(Status(ErrorCode::kCancelled, "the contents of the array were never handed over"));
  } catch (const std::exception&) {  // Without memory the promises end with an error of their own.
  }
}

void LateBuffer::fail(Status status) {
  const std::lock_guard posting(posting_);
  {
    const std::lock_guard lock(progress_->mutex);
    if (progress_->closed) return;
    progress_->closed = true;
  }
  // Readers of the array come behind all pieces, and hear of the error.
  if (last_.serial != 0) buffer_->set_definer(last_);
  progress_->end_one(status);
  progress_->given.set({});
}

Status LateBuffer::fill(const Buffer& source) {
  const std::lock_guard posting(posting_);
  if (source.shape() != buffer_->shape()) {
    return invalid_argument("an array of {} for one of {}", source.shape().to_string(),
                            buffer_->shape().to_string());
  }
  {
    const std::lock_guard lock(progress_->mutex);
    if (progress_->closed || last_.serial != 0) {
      return failed_precondition("{} has contents already", buffer_->shape().to_string());
    }
  }
  TENON_ASSIGN(const BufferPtr copy, source.copy_to(device_, buffer_->memory_kind(), storage_));
  {
    const std::lock_guard lock(progress_->mutex);
    progress_->closed = true;
  }
  buffer_->set_definer(copy->definer());
  copy->defined().on_ready([progress = progress_, copy](const Status& status) {
    progress->end_one(status);
    progress->given.set({});
  });
  return {};
}

Result<Event> LateBuffer::write(std::span<const std::byte> bytes, int64_t offset, bool is_last,
                                HostMemory kept) {
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t room = buffer_->shape().byte_size();
  if (offset < 0 || offset > room || size > room - offset) {
    return invalid_argument("{} bytes at {} of {}, which has {}", size, offset,
                            buffer_->shape().to_string(), room);
  }
  if (device_->stages() && kept == nullptr) {
    TENON_ASSIGN(kept, host_memory(size, "a piece of an array"));
    if (size > 0) std::memcpy(kept->data(), bytes.data(), bytes.size());
    bytes = *kept;
  }
  auto read = std::make_shared<Promise>(device_->pool());
  const std::lock_guard posting(posting_);
  {
    const std::lock_guard lock(progress_->mutex);
    if (progress_->closed) {
      return failed_precondition("{} is complete: a piece comes behind the last one",
                                 buffer_->shape().to_string());
    }
    ++progress_->parts;
    progress_->closed = is_last;
  }
  const auto source = backend::MemoryAddress::of_host(bytes.data());
  const bool across = storage_.place().on_host() != source.on_host();
  const QueueRole role = across ? QueueRole::kUpload : QueueRole::kCompute;
  WorkMarks after;
  after.raise(storage_.free_after());
  last_ = device_->post([device = device_.get(), to = storage_, source, offset, size, role,
                         kept] { return device->copy(to.place(offset), source, size, role); },
                        [progress = progress_, read](const Status& status) {
                          read->set({});
                          progress->end_one(status);
                        },
                        {role, after});
  if (is_last) {
    buffer_->set_definer(last_);
    progress_->end_one({});
    progress_->given.set({});
  }
  return read->event();
}

}  // namespace tenon::runtime
