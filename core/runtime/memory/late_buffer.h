// LateBuffer: an array whose contents come later, in pieces from the host or from another array.
//
// Thread-safety: all of it.
#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "core/runtime/buffer.h"

namespace tenon::runtime {

class LateBuffer {
 public:
  /// Errors: no room; a lost device.
  static Result<std::shared_ptr<LateBuffer>> create(const std::shared_ptr<Device>& device,
                                                    MemoryKind kind, const Shape& shape);
  /// An array without its contents gets the error kCancelled.
  ~LateBuffer();
  LateBuffer(const LateBuffer&) = delete;
  LateBuffer& operator=(const LateBuffer&) = delete;

  /// Work may be given to the device with it once given() has happened, not before.
  const BufferPtr& buffer() const { return buffer_; }
  /// The contents were handed over, or never will be.
  Event given() const { return progress_->given.event(); }

  /// Copies `bytes` to `offset` in the array. The event happens when `bytes` are not read any more;
  /// `kept`, if they are its own, stays until then. Errors: bytes outside of the array; a piece
  /// behind the last one, or behind fail().
  Result<Event> write(std::span<const std::byte> bytes, int64_t offset, bool is_last,
                      HostMemory kept = nullptr);
  /// The contents are those of `source`, an array of the same shape. Errors: an array that is gone;
  /// one behind a piece.
  Status fill(const Buffer& source);
  /// The array gets this error, without effect if its contents were handed over.
  void fail(Status status);

 private:
  /// Shared with the work of the pieces.
  struct Progress {
    explicit Progress(const CallbackPool& pool) : given(pool), defined(pool) {}

    void end_one(const Status& status);

    std::mutex mutex;
    Promise given;
    Promise defined;
    int64_t parts = 1;    ///< Pieces on their way, and the hand-over itself.
    bool closed = false;  ///< Nothing more is handed over.
    Status outcome;       ///< The first error.
  };

  LateBuffer(std::shared_ptr<Device> device, BufferStorage storage,
             std::shared_ptr<Progress> progress)
      : device_(std::move(device)), storage_(std::move(storage)), progress_(std::move(progress)) {}

  const std::shared_ptr<Device> device_;
  const BufferStorage storage_;
  const std::shared_ptr<Progress> progress_;
  BufferPtr buffer_;
  std::mutex posting_;  // One piece after the other: the last is behind all.
  WorkPosition last_;
};

}  // namespace tenon::runtime
