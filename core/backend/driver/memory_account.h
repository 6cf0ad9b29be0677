// How much memory of a device is in use.
//
// Thread-safety: MemoryAccount from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "core/base/status.h"

namespace tenon::backend {

/// Counts what is allocated against what there is (B16): a driver may give more, and fail later.
class MemoryAccount {
 public:
  /// Bytes that are in use while it exists. It may outlive the account.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      std::swap(in_use_, other.in_use_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (in_use_ != nullptr) *in_use_ -= bytes_;
    }

   private:
    friend class MemoryAccount;
    Share(std::shared_ptr<std::atomic<int64_t>> in_use, int64_t bytes)
        : in_use_(std::move(in_use)), bytes_(bytes) {}
    std::shared_ptr<std::atomic<int64_t>> in_use_;
    int64_t bytes_ = 0;
  };

  /// `bytes`: those of the device; 0: it has no limit of its own.
  explicit MemoryAccount(int64_t bytes = 0) : bytes_(bytes) {}
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  /// Errors: kResourceExhausted, with the numbers.
  Result<Share> take(int64_t bytes) {
    int64_t before = *in_use_;
    do {
      if (bytes_ != 0 && bytes > bytes_ - before) {
        return resource_exhausted("{} bytes are asked for, {} of {} are in use", bytes, before,
                                  bytes_);
      }
    } while (!in_use_->compare_exchange_weak(before, before + bytes));
    return Share(in_use_, bytes);
  }
  int64_t in_use() const { return *in_use_; }

 private:
  const int64_t bytes_;
  const std::shared_ptr<std::atomic<int64_t>> in_use_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace tenon::backend
