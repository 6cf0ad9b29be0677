#include "core/runtime/buffer.h"

#include <cstring>
#include <limits>

namespace tenon::runtime {
namespace {

bool is_dense(const HostArray& array) {
  if (!array.byte_strides) return true;
  const Dims& dims = array.shape.dims();
  int64_t expected = static_cast<int64_t>(storage_bytes(array.shape.element_type()));
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] != 1 && (*array.byte_strides)[d] != expected) return false;
    expected *= dims[d];
  }
  return true;
}

// The box of a copy with these strides of destination and source.
backend::Box box_of(const Shape& shape, const Dims& to, const Dims& from) {
  return {static_cast<int64_t>(storage_bytes(shape.element_type())), shape.dims(), to, from};
}

// The space of the device that arrays of this kind lie in, if there is one.
std::optional<size_t> space_for(const Device& device, MemoryKind kind) {
  const auto space = device.space_of(kind == MemoryKind::kDevice ? backend::SpaceKind::kDevice
                                                                 : backend::SpaceKind::kPinnedHost);
  return space || kind == MemoryKind::kPinnedHost ? space : std::optional<size_t>(0);
}

// The queue for a copy. Copies between two places of the host wait for the queue for computing.
QueueRole role_of_copy(const backend::MemoryAddress& to, const backend::MemoryAddress& from) {
  if (to.on_host() == from.on_host()) return QueueRole::kCompute;
  return to.on_host() ? QueueRole::kDownload : QueueRole::kUpload;
}

// The work that a copy comes behind: that which writes its source, and earlier users of its
// destination.
WorkMarks before_copy(const WorkPosition& definer, const BufferStorage& to) {
  WorkMarks after;
  after.raise(definer);
  after.raise(to.free_after());
  return after;
}

// With in_order(): work that writes the memory comes behind this one.
void note_reader(const BufferStorage& storage, const WorkPosition& reader) {
  if (storage.suballocation != nullptr) storage.suballocation->note_read(reader);
}

// The error of a copy, `status`, or else that of the contents, which come before it.
Status worst(const Event& defined, Status status) {
  if (!status.ok()) return status;
  // Work is heard of after what it comes behind: that has its outcome.
  return defined.is_ready() ? defined.await() : Status();
}

}  // namespace

std::string_view name_of(MemoryKind kind) {
  return kind == MemoryKind::kDevice ? "device" : "pinned_host";
}

Result<int64_t> extent_of(const Shape& shape, const Dims& byte_strides) {
  if (shape.byte_size() == 0) return 0;
  __int128 last = static_cast<__int128>(storage_bytes(shape.element_type()));
  for (size_t d = 0; d < byte_strides.size(); ++d) {
    if (shape.dim(d) <= 1) continue;
    last += static_cast<__int128>(shape.dim(d) - 1) * byte_strides[d];
    if (byte_strides[d] < 0 || last > std::numeric_limits<int64_t>::max()) {
      return invalid_argument("elements of {}, {} bytes apart, lie nowhere", shape.to_string(),
                              dims_to_string(byte_strides, " and "));
    }
  }
  return static_cast<int64_t>(last);
}

Result<HostMemory> dense(const HostArray& array) {
  TENON_ASSIGN(HostMemory memory, host_memory(array.shape.byte_size(), array.shape.to_string()));
  if (memory->empty()) return memory;
  if (is_dense(array)) {
    std::memcpy(memory->data(), array.data, memory->size());
  } else {
    copy_box(memory->data(), array.data,
             box_of(array.shape, row_major_byte_strides(array.shape), *array.byte_strides));
  }
  return memory;
}

const std::byte* BufferStorage::host_data() const {
  static constexpr std::byte kNothing{};  // An array without elements has a place too.
  if (imported != nullptr) return imported->host();
  if (suballocation != nullptr) return suballocation->host();
  if (host == nullptr) return nullptr;
  return host->empty() ? &kNothing : host->data();
}

Buffer::Buffer(std::shared_ptr<Device> device, MemoryKind kind, Shape shape, BufferStorage storage,
               Event defined, WorkPosition definer)
    : Buffer(std::move(device), kind, std::make_shared<const Shape>(std::move(shape)),
             std::move(storage), std::move(defined), definer) {}

Buffer::Buffer(std::shared_ptr<Device> device, MemoryKind kind, std::shared_ptr<const Shape> shape,
               BufferStorage storage, Event defined, WorkPosition definer)
    : device_(std::move(device)),
      kind_(kind),
      shape_(std::move(shape)),
      defined_(std::move(defined)),
      // Contents that nothing writes are what the memory held before.
      definer_(definer.serial != 0 ? definer : storage.free_after()),
      storage_(std::move(storage)) {}

bool Buffer::is_deleted() const {
  const std::lock_guard lock(mutex_);
  return deleted_;
}

void Buffer::remove() {
  BufferStorage freed;  // Outside the lock: the allocator has one of its own.
  const std::lock_guard lock(mutex_);
  deleted_ = true;
  removed_ = true;
  if (held_ == 0) std::swap(freed, storage_);
}

Status Buffer::gone() const {
  return Status(
      failed_precondition("the buffer of {} has been deleted or donated", shape_->to_string()));
}

Status Buffer::hold() {
  const std::lock_guard lock(mutex_);
  if (deleted_) return gone();
  // Other memory does not go with the device.
  const bool viewed =
      storage_.suballocation != nullptr && storage_.suballocation->host() != nullptr;
  if (held_++ == 0 && viewed) kept_open_ = device_->keep_open();
  return {};
}

void Buffer::release() {
  BufferStorage freed;
  std::shared_ptr<const void> kept_open;
  const std::lock_guard lock(mutex_);
  if (held_ > 0) --held_;
  if (held_ == 0) std::swap(kept_open, kept_open_);
  if (held_ == 0 && deleted_) std::swap(freed, storage_);
}

bool Buffer::is_host_visible() const {
  const std::lock_guard lock(mutex_);
  return !storage_.empty() && storage_.host_data() != nullptr;
}

Result<const std::byte*> Buffer::host_data() const {
  TENON_TRY(defined_.await());
  return host_address();
}

Result<const std::byte*> Buffer::host_address() const {
  const std::lock_guard lock(mutex_);
  if (storage_.empty() || (deleted_ && held_ == 0)) return tl::make_unexpected(gone());
  const bool is_the_devices = storage_.suballocation != nullptr && kept_open_ == nullptr;
  if (is_the_devices) TENON_TRY(device_->lost());
  if (const std::byte* data = storage_.host_data()) return data;
  return unimplemented("the memory of {} on {} has no address on the host", shape_->to_string(),
                       device_->info().name);
}

Result<BufferStorage> Buffer::storage() const {
  const std::lock_guard lock(mutex_);
  if (deleted_) return tl::make_unexpected(gone());
  return storage_;
}

bool Buffer::is_writable() const {
  const std::lock_guard lock(mutex_);
  return !deleted_ && held_ == 0 && storage_.imported == nullptr;
}

Result<Buffer::Donated> Buffer::donate() {
  const std::lock_guard lock(mutex_);
  if (deleted_) return tl::make_unexpected(gone());
  deleted_ = true;
  if (held_ > 0) return Donated{storage_, false};
  const bool writable = storage_.imported == nullptr;
  return Donated{std::exchange(storage_, BufferStorage()), writable};
}

void Buffer::restore(BufferStorage storage) {
  const std::lock_guard lock(mutex_);
  if (removed_) return;
  storage_ = std::move(storage);
  deleted_ = false;
}

Event Buffer::copy_to_host(std::span<std::byte> to, const std::optional<Dims>& strides) const {
  const int64_t bytes = shape_->byte_size();
  const Dims dense = row_major_byte_strides(*shape_);
  const Dims wanted = strides.value_or(dense);
  if (wanted.size() != dense.size()) {
    return Event::ready(invalid_argument("{} strides of {}", wanted.size(), shape_->to_string()));
  }
  const Result<int64_t> extent = extent_of(*shape_, wanted);
  if (!extent || static_cast<size_t>(*extent) > to.size()) {
    return Event::ready(
        wanted == dense
            ? invalid_argument("{} has {} bytes, there is room for {}", shape_->to_string(), bytes,
                               to.size())
            : invalid_argument("elements of {}, {} bytes apart, do not all lie within {} bytes",
                               shape_->to_string(), dims_to_string(wanted, " and "), to.size()));
  }
  HostMemory staging;
  if (device_->stages() || device_->is_viewed() || wanted != dense) {
    auto memory = host_memory(bytes, "a copy to the host");
    if (!memory) return Event::ready(memory.error());
    staging = *std::move(memory);
  }
  return fetch(to.data(), std::move(staging), 0, bytes, box_of(*shape_, wanted, dense));
}

Event Buffer::copy_part_to_host(std::span<std::byte> to, int64_t offset) const {
  const auto bytes = static_cast<int64_t>(to.size());
  const int64_t all = shape_->byte_size();
  if (offset < 0 || offset > all || bytes > all - offset) {
    return Event::ready(invalid_argument("{} bytes at {} of {}, which has {}", bytes, offset,
                                         shape_->to_string(), all));
  }
  HostMemory staging;
  if (device_->stages() || device_->is_viewed()) {
    auto memory = host_memory(bytes, "a copy to the host");
    if (!memory) return Event::ready(memory.error());
    staging = *std::move(memory);
  }
  return fetch(to.data(), std::move(staging), offset, bytes, {1, {bytes}, {1}, {1}});
}

Event Buffer::fetch(std::byte* to, HostMemory staging, int64_t offset, int64_t bytes,
                    backend::Box box) const {
  const auto in_order = device_->in_order();
  Result<BufferStorage> from = storage();
  if (!from) return Event::ready(from.error());
  auto promise = std::make_shared<Promise>(device_->pool());
  const Event event = promise->event();
  std::byte* const target = staging != nullptr ? staging->data() : to;
  const QueueRole role = role_of_copy(backend::MemoryAddress::of_host(target), from->place());
  const WorkPosition reader = device_->post(
      [device = device_.get(), from = *from, target, offset, bytes, role] {
        return device->copy(backend::MemoryAddress::of_host(target), from.place(offset), bytes,
                            role);
      },
      [promise, staging, to, box = std::move(box), defined = defined_](const Status& status) {
        const Status outcome = worst(defined, status);
        if (outcome.ok() && staging != nullptr) copy_box(to, staging->data(), box);
        promise->set(outcome);
      },
      {role, before_copy(definer_, {})});
  note_reader(*from, reader);
  return event;
}

Result<Literal> Buffer::to_literal() const {
  Literal literal(*shape_);
  TENON_TRY(copy_to_host(literal.mutable_data()).await());
  return literal;
}

Result<HostMemory> host_memory(int64_t bytes, std::string_view label) {
  try {
    return std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
  } catch (const std::exception&) {
    return resource_exhausted("the host has no {} bytes for {}", bytes, label);
  }
}

Result<BufferStorage> allocate(Device& device, MemoryKind kind, int64_t bytes,
                               const MemoryLabel& label, QueueRole user) {
  BufferStorage storage;
  if (const auto space = space_for(device, kind)) {
    TENON_TRY(device.lost());
    TENON_ASSIGN(storage.suballocation, device.memory(*space).allocate(bytes, label, user));
    return storage;
  }
  TENON_ASSIGN(storage.host, host_memory(bytes, label.text()));
  return storage;
}

Result<BufferStorage> import(const std::shared_ptr<Device>& device, MemoryKind kind,
                             std::span<const std::byte> host, Promise gone) {
  BufferStorage storage;
  if (const auto space = space_for(*device, kind)) {
    TENON_ASSIGN(storage.imported, Imported::create(device, *space, host, std::move(gone)));
  }
  return storage;
}

namespace {

// Imports the array; nothing if the device does not take it as it lies.
Result<std::optional<FromHost>> imported_from_host(const std::shared_ptr<Device>& device,
                                                   MemoryKind kind, const HostArray& array) {
  const auto bytes = static_cast<size_t>(array.shape.byte_size());
  if (array.lifetime != HostLifetime::kUntilDeleted || bytes == 0 || !is_dense(array)) return {};
  Promise gone(device->pool());
  Event host_done = gone.event();
  TENON_ASSIGN(BufferStorage storage, import(device, kind, {array.data, bytes}, std::move(gone)));
  if (storage.empty()) return {};
  return FromHost{
      std::make_shared<Buffer>(device, kind, array.shape, std::move(storage), Event::ready()),
      std::move(host_done)};
}

}  // namespace

Result<FromHost> buffer_from_host(const std::shared_ptr<Device>& device, MemoryKind kind,
                                  const HostArray& array) {
  if (array.byte_strides && array.byte_strides->size() != array.shape.dims().size()) {
    return invalid_argument("{} strides of {}", array.byte_strides->size(),
                            array.shape.to_string());
  }
  TENON_ASSIGN(std::optional<FromHost> imported, imported_from_host(device, kind, array));
  if (imported) return *std::move(imported);
  const int64_t bytes = array.shape.byte_size();
  TENON_ASSIGN(
      const BufferStorage storage,
      allocate(*device, kind, bytes, fmt::format("an argument {}", array.shape.to_string()),
               QueueRole::kUpload));
  // An array that may change after this call, or must not reach the device, is copied at once.
  const bool at_once = array.lifetime == HostLifetime::kDuringCall || device->stages();
  auto staging = std::make_shared<HostMemory>();
  if (at_once) {
    TENON_ASSIGN(*staging, dense(array));
  }
  auto defined = std::make_shared<Promise>(device->pool());
  auto host_done = std::make_shared<Promise>(device->pool());
  FromHost result = {std::make_shared<Buffer>(device, kind, array.shape, storage, defined->event()),
                     at_once ? Event::ready() : host_done->event()};
  const QueueRole role = role_of_copy(storage.place(), backend::MemoryAddress::of_host(array.data));
  result.buffer->set_definer(device->post(
      [device = device.get(), storage, array, staging, bytes, role]() -> Status {
        const std::byte* from = array.data;
        if (bytes > 0 && *staging == nullptr && !is_dense(array)) {
          Status boxed = device->copy_box(
              storage.place(), backend::MemoryAddress::of_host(from),
              box_of(array.shape, row_major_byte_strides(array.shape), *array.byte_strides), role);
          if (boxed.code() != ErrorCode::kUnimplemented) return boxed;
          TENON_ASSIGN(*staging, dense(array));
        }
        if (*staging != nullptr) from = (*staging)->data();
        return device->copy(storage.place(), backend::MemoryAddress::of_host(from), bytes, role);
      },
      [defined, host_done](const Status& status) {
        // The host's array is not touched any more, even after an error.
        host_done->set({});
        defined->set(status);
      },
      {role, before_copy({}, storage)}));
  return result;
}

// Between devices bytes go through the host: the target's worker waits for the source's. Work is
// posted to both in one order, so that no two wait for each other.
Result<BufferPtr> Buffer::copy_to(const std::shared_ptr<Device>& device, MemoryKind kind,
                                  BufferStorage to) const {
  const int64_t bytes = shape_->byte_size();
  if (to.empty()) {
    TENON_ASSIGN(to,
                 allocate(*device, kind, bytes, fmt::format("a copy of {}", shape_->to_string())));
  }
  auto defined = std::make_shared<Promise>(device->pool());
  auto copy = std::make_shared<Buffer>(device, kind, shape_, to, defined->event());
  if (device == device_) {
    const auto in_order = device->in_order();
    TENON_ASSIGN(const BufferStorage from, storage());
    const QueueRole role = role_of_copy(to.place(), from.place());
    const WorkPosition copier = device->post(
        [device = device.get(), to, from, bytes, role] {
          return device->copy(to.place(), from.place(), bytes, role);
        },
        [defined, source = defined_](const Status& status) { defined->set(worst(source, status)); },
        {role, before_copy(definer_, to)});
    note_reader(from, copier);
    copy->set_definer(copier);
    return copy;
  }
  TENON_ASSIGN(const HostMemory staging, host_memory(bytes, "a copy between devices"));
  const Event fetched = copy_to_host(*staging);
  // The source writes there even if the target is lost and its work is dropped.
  fetched.on_ready([staging](const Status&) {});
  const auto source = backend::MemoryAddress::of_host(staging->data());
  const QueueRole role = role_of_copy(to.place(), source);
  copy->set_definer(device->post(
      [device = device.get(), to, staging, source, fetched, bytes, role]() -> Status {
        TENON_TRY(fetched.await());
        return device->copy(to.place(), source, bytes, role);
      },
      [defined](const Status& status) { defined->set(status); }, {role, before_copy({}, to)}));
  return copy;
}

}  // namespace tenon::runtime
