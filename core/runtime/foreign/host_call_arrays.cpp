#include "core/runtime/foreign/host_call_arrays.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace tenon::runtime {
namespace {

constexpr std::align_val_t kAlignment{64};

// The arrays with the tokens between them, as the function sees them.
template <class Array>
std::vector<Array> seen(const std::vector<program::ForeignArray>& forms,
                        const std::vector<Array>& arrays) {
  std::vector<Array> all;
  size_t next = 0;
  for (const program::ForeignArray& form : forms) {
    if (form.is_token) {
      all.push_back({.shape = {}, .bytes = {}, .is_token = true});
      continue;
    }
    all.push_back(arrays[next++]);
    all.back().shape =
        Shape(all.back().shape.element_type(), form.dims_of(all.back().shape.dims()));
  }
  return all;
}

}  // namespace

AlignedBytes::AlignedBytes(int64_t bytes)
    : bytes_(static_cast<size_t>(bytes)),
      data_(static_cast<std::byte*>(::operator new(std::max<size_t>(bytes_, 1), kAlignment))) {}

void AlignedBytes::Delete::operator()(std::byte* data) const {
  ::operator delete(data, kAlignment);
}

void HostCallArrays::add_operand(const Shape& shape, std::span<const std::byte> view) {
  operands_.push_back({.shape = shape, .bytes = view, .is_token = false});
}

std::span<std::byte> HostCallArrays::add_operand(const Shape& shape) {
  const std::span<std::byte> bytes = memory_.emplace_back(shape.byte_size()).bytes();
  add_operand(shape, bytes);
  return bytes;
}

void HostCallArrays::add_result(const Shape& shape, std::span<std::byte> place) {
  results_.push_back({.shape = shape, .bytes = place, .is_token = false});
}

void HostCallArrays::add_result(const Shape& shape) {
  add_result(shape, memory_.emplace_back(shape.byte_size()).bytes());
}

HostCallFrame HostCallArrays::frame(int64_t device, HostCallOrigin origin) {
  for (const auto& [r, o] : foreign_.aliases) {
    const std::span<std::byte> shared = results_[r].bytes;
    const std::span<const std::byte> operand = operands_[o].bytes;
    if (!shared.empty() && operand.data() != shared.data())
      std::memcpy(shared.data(), operand.data(), shared.size());
    operands_[o].bytes = shared;
  }
  seen_operands_ = seen(foreign_.operands, operands_);
  seen_results_ = seen(foreign_.results, results_);
  return {seen_operands_, seen_results_, device, origin};
}

}  // namespace tenon::runtime
