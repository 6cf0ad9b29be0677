// C++20 over tenon_aot.h: an arena that frees itself, and a file of weights that is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "tenon_aot.h"

namespace tenon_aot {

/// bf16 and f16: their bits.
using half_bits = std::uint16_t;

/// The memory of a function's temporaries; valid() is false if there was none.
class Arena {
 public:
  Arena(std::size_t bytes, std::size_t alignment)
      : alignment_(alignment),
        bytes_(bytes),
        data_(bytes == 0 ? nullptr
                         : ::operator new(bytes, std::align_val_t(alignment), std::nothrow)) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { ::operator delete(data_, std::align_val_t(alignment_)); }

  bool valid() const { return bytes_ == 0 || data_ != nullptr; }
  void* data() const { return data_; }

 private:
  std::size_t alignment_;
  std::size_t bytes_;
  void* data_;
};

}  // namespace tenon_aot
