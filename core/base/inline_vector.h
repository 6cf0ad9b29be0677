// InlineVector: a vector of the standard library whose first elements need no memory of the heap.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <vector>

namespace tenon {

/// A vector for which `kInline` elements have room within the object: for short lists on paths
/// where an allocation counts, such as the buffers of a launch. It cannot be copied or moved, and
/// neither may the vector be moved out of it.
template <class T, size_t kInline>
class InlineVector {
 public:
  /// Reserves memory for `capacity` elements: one that grows leaves the room that it had.
  explicit InlineVector(size_t capacity = kInline) { elements_.reserve(capacity); }
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;

  std::pmr::vector<T>& operator*() { return elements_; }
  const std::pmr::vector<T>& operator*() const { return elements_; }
  std::pmr::vector<T>* operator->() { return &elements_; }
  const std::pmr::vector<T>* operator->() const { return &elements_; }

 private:
  alignas(T) std::byte room_[kInline * sizeof(T)];
  std::pmr::monotonic_buffer_resource memory_{room_, sizeof room_};
  std::pmr::vector<T> elements_{&memory_};
};

}  // namespace tenon
