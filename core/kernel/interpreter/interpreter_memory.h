// The interpreter's memory, with the record of accesses. Private to core/kernel.
#pragma once

#include <cstring>
#include <vector>

#include "core/kernel/interpreter/interpreter.h"
#include "core/kernel/math/scalar.h"

namespace tenon::kernel {

/// The accesses of one loop to one element. Iterations count from 1; `instance` distinguishes the
/// executions of the loop.
struct ElementHistory {
  uint32_t instance = 0;
  uint32_t writer = 0;
  uint32_t reader = 0;  ///< kMany for several.
  uint8_t atomic = 0;   ///< 1 + the kind, once an atomic has accessed it.
};

enum class TouchKind : uint8_t { kLoad, kStore, kAtomic };
enum class AccessConflict : uint8_t { kNoConflict, kRace, kAtomicMix };

/// Records that iteration `iteration` of execution `instance` of a loop accesses the element.
inline AccessConflict record(ElementHistory& touch, uint32_t instance, uint32_t iteration,
                             TouchKind kind, uint8_t atomic) {
  constexpr uint32_t kMany = ~uint32_t{0};
  if (touch.instance != instance) touch = {instance, 0, 0, 0};
  if (kind == TouchKind::kAtomic) {
    const bool plain = touch.writer != 0 || touch.reader != 0;
    if (plain || (touch.atomic != 0 && touch.atomic != atomic)) return AccessConflict::kAtomicMix;
    touch.atomic = atomic;
    return AccessConflict::kNoConflict;
  }
  if (touch.atomic != 0) return AccessConflict::kAtomicMix;
  if (touch.writer != 0 && touch.writer != iteration) return AccessConflict::kRace;
  if (kind == TouchKind::kLoad) {
    touch.reader = touch.reader == 0 || touch.reader == iteration ? iteration : kMany;
    return AccessConflict::kNoConflict;
  }
  if (touch.reader != 0 && touch.reader != iteration) return AccessConflict::kRace;
  touch.writer = iteration;
  return AccessConflict::kNoConflict;
}

/// The bytes of a memory, or of two in place.
struct MemoryBytes {
  std::byte* data = nullptr;
  std::vector<std::byte> own;           ///< Bytes of scratch and private memory.
  std::vector<ElementHistory> by_grid;  ///< Accesses of the grid to buffers.
  std::vector<ElementHistory> by_lanes;
  std::vector<uint32_t> stored;  ///< The epoch in which the element was last stored to.
  uint32_t epoch = 1;
  bool shared = false;  ///< Two buffers in place.
};

/// A memory as the interpreter uses it.
struct View {
  MemoryBytes* storage = nullptr;
  ElementType type{};
  size_t width = 1;  ///< Bytes of an element.
  int bits = 8;      ///< Bits of a packed element.
  bool packed = false;
  Dims dims;
  Dims strides;

  uint64_t get(int64_t element) const {
    if (packed) {
      const auto bit = static_cast<uint64_t>(element) * static_cast<uint64_t>(bits);
      const auto byte = static_cast<uint8_t>(storage->data[bit / 8]);
      return from_pattern(type, static_cast<uint64_t>(byte >> (bit % 8)));
    }
    uint64_t raw = 0;
    std::memcpy(&raw, storage->data + static_cast<size_t>(element) * width, width);
    return width == 8 ? raw : from_pattern(type, raw);
  }
  void put(int64_t element, uint64_t value) const {
    std::memcpy(storage->data + static_cast<size_t>(element) * width, &value, width);
  }
};

}  // namespace tenon::kernel
