// Buffer: an array in the memory of a device.
//
// Thread-safety: everything, from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/runtime/device.h"
#include "core/runtime/memory/imported.h"
#include "core/types/literal.h"

namespace tenon::runtime {

/// Where arrays of a device may lie. A device without host-visible memory of its own has plain host
/// memory for kPinnedHost.
enum class MemoryKind : uint8_t { kDevice, kPinnedHost };
/// "device", "pinned_host"
std::string_view name_of(MemoryKind kind);

/// How long the host's array stays as it is.
enum class HostLifetime : uint8_t {
  kDuringCall,    ///< It may change when the call has returned: it is copied at once.
  kUntilCopied,   ///< It stays until `host_done` has happened.
  kUntilDeleted,  ///< As long as the buffer lives, whose memory it may be. `host_done` says when.
};

struct HostArray {
  const std::byte* data = nullptr;
  Shape shape;
  /// Bytes between neighbours along each dimension, negative and zero ones too; absent: dense,
  /// row-major.
  std::optional<Dims> byte_strides;
  HostLifetime lifetime = HostLifetime::kDuringCall;
};

/// Host memory, where a device has none that the host can see.
using HostMemory = std::shared_ptr<std::vector<std::byte>>;

/// Elements of `array` one after the other, row-major.
Result<HostMemory> dense(const HostArray& array);

/// Bytes from the first element to the end of the last, with these strides; 0 without elements.
/// Errors: strides that lead before the first, or out of the numbers.
Result<int64_t> extent_of(const Shape& shape, const Dims& byte_strides);

/// Errors: kResourceExhausted, saying for what.
Result<HostMemory> host_memory(int64_t bytes, std::string_view label);

/// Bytes of a buffer in one of three kinds of memory, shared by their users.
struct BufferStorage {
  std::shared_ptr<Suballocation> suballocation;
  HostMemory host;
  std::shared_ptr<const Imported> imported;  ///< The caller's, which nothing writes.

  bool empty() const { return suballocation == nullptr && host == nullptr && imported == nullptr; }
  backend::MemoryAddress place(int64_t offset = 0) const {
    if (imported != nullptr) return imported->place(offset);
    return suballocation != nullptr ? suballocation->place(offset)
                                    : backend::MemoryAddress::of_host(host->data() + offset);
  }
  /// Where the host sees it; null if it does not.
  const std::byte* host_data() const;
  /// The last work of the queue for computing that may have used the memory before.
  WorkPosition free_after() const {
    return suballocation != nullptr ? suballocation->free_after() : WorkPosition();
  }
};

class Buffer;
using BufferPtr = std::shared_ptr<Buffer>;

class Buffer {
 public:
  /// `defined` happens when the contents are there, or with the error that prevents them.
  /// `definer` is the work that writes them, if there is some.
  Buffer(std::shared_ptr<Device> device, MemoryKind kind, Shape shape, BufferStorage storage,
         Event defined, WorkPosition definer = {});
  /// One that shares its shape with others.
  Buffer(std::shared_ptr<Device> device, MemoryKind kind, std::shared_ptr<const Shape> shape,
         BufferStorage storage, Event defined, WorkPosition definer = {});

  const Shape& shape() const { return *shape_; }
  const std::shared_ptr<Device>& device() const { return device_; }
  MemoryKind memory_kind() const { return kind_; }
  const Event& defined() const { return defined_; }

  /// Deleted buffers keep their shape, device and event; their memory is free once the work that
  /// was given uses it no more.
  bool is_deleted() const;
  void remove();

  /// While it is held, its memory stays as it is: neither `remove` frees it nor does an execution
  /// that the buffer is donated to write there.
  Status hold();
  void release();

  /// Whether the host sees its memory. No more once that is gone.
  bool is_host_visible() const;
  /// Where the elements lie, dense and row-major, once they are there, for which it waits. They
  /// stay while the buffer is held; else while it is neither removed, donated nor destroyed, and
  /// the device is not lost. Errors: those of the contents; a lost device; memory that the host
  /// does not see.
  Result<const std::byte*> host_data() const;
  /// The same without waiting: the contents are undefined before the buffer is defined.
  Result<const std::byte*> host_address() const;

  /// Copies the elements to `to`, which stays until the event: dense and row-major, or with bytes
  /// between neighbours along each dimension. Errors, as the event: elements outside of `to`.
  Event copy_to_host(std::span<std::byte> to, const std::optional<Dims>& strides = {}) const;
  /// Copies the bytes from `offset` as they lie, as many as there is room for. Errors, as the
  /// event: bytes outside of the array.
  Event copy_part_to_host(std::span<std::byte> to, int64_t offset) const;
  /// Waits.
  Result<Literal> to_literal() const;
  /// A copy in the memory of that device, of any backend; in `into`, which allocate() gave for it,
  /// if that is not empty.
  Result<BufferPtr> copy_to(const std::shared_ptr<Device>& device, MemoryKind kind,
                            BufferStorage into = {}) const;

  // --- Of Executable

  /// The work that writes the contents, which work that reads them comes behind.
  const WorkPosition& definer() const { return definer_; }
  /// Only before anybody else has the buffer.
  void set_definer(const WorkPosition& definer) { definer_ = definer; }
  /// The memory, if it is still there.
  Result<BufferStorage> storage() const;
  struct Donated {
    BufferStorage storage;
    bool writable = false;  ///< Nobody holds it, and it is not the caller's own.
  };
  /// Whether donate() would give writable memory.
  bool is_writable() const;
  /// Takes the memory away, as `remove` does.
  Result<Donated> donate();
  /// Gives the memory back after an execution that did not come to be, unless the buffer was
  /// removed meanwhile.
  void restore(BufferStorage storage);

 private:
  Status gone() const;
  /// Copies `bytes` from `offset` to `to`; with `staging` they go there, and from there by `box`.
  Event fetch(std::byte* to, HostMemory staging, int64_t offset, int64_t bytes,
              backend::Box box) const;

  const std::shared_ptr<Device> device_;
  const MemoryKind kind_;
  const std::shared_ptr<const Shape> shape_;
  const Event defined_;
  WorkPosition definer_;
  mutable std::mutex mutex_;
  BufferStorage storage_;
  std::shared_ptr<const void> kept_open_;  // While it is held.
  int held_ = 0;
  bool deleted_ = false;
  bool removed_ = false;  // Not donated.
};

struct FromHost {
  BufferPtr buffer;
  Event host_done;
};

/// A buffer with the elements of `array`. Errors: no room; a lost device.
Result<FromHost> buffer_from_host(const std::shared_ptr<Device>& device, MemoryKind kind,
                                  const HostArray& array);
/// One whose contents are for work of `user`'s queue to write.
Result<BufferStorage> allocate(Device& device, MemoryKind kind, int64_t bytes,
                               const MemoryLabel& label, QueueRole user = QueueRole::kCompute);
/// The host's own bytes as memory of the device (Imported); empty if it does not take them as they
/// lie.
Result<BufferStorage> import(const std::shared_ptr<Device>& device, MemoryKind kind,
                             std::span<const std::byte> host, Promise gone);

}  // namespace tenon::runtime
