#include "backends/gpu/simulator/memory.h"

#include <algorithm>
#include <cstring>

namespace tenon::gpu {
namespace {

std::string_view verb_of(AccessKind kind) {
  switch (kind) {
    case AccessKind::kLoad:
      return "loads";
    case AccessKind::kStore:
      return "stores";
    case AccessKind::kAtomic:
      return "updates";
  }
  return "";
}

std::string_view past_of(AccessKind kind) {
  switch (kind) {
    case AccessKind::kLoad:
      return "loaded";
    case AccessKind::kStore:
      return "stored";
    case AccessKind::kAtomic:
      return "updated";
  }
  return "";
}

}  // namespace

std::string prefix_of(const SimKernel& kernel) {
  return fmt::format("gpu-sim: @{}: ", kernel.symbol);
}

SimMemory::SimMemory(const SimImage& image, const SimKernel& kernel, const SimLaunch& launch)
    : image_(image), kernel_(kernel), knows_sizes_(!launch.shape.buffer_bytes.empty()) {
  size_t number = 0;
  for (size_t i = 0; i < kernel.parameters.size() && knows_sizes_; ++i) {
    const SimParameter& parameter = kernel.parameters[i];
    SimBuffer buffer;
    buffer.name = parameter.name;
    if (parameter.is_buffer && number < launch.shape.buffer_bytes.size()) {
      std::memcpy(static_cast<void*>(&buffer.begin), launch.arguments[i], sizeof buffer.begin);
      buffer.bytes = launch.shape.buffer_bytes[number++];
      buffer.stored = parameter.stored;
    }
    buffers_.push_back(std::move(buffer));
  }
  add_ranges(kernel.granule);
  if (kernel.shared_bytes > 0) {
    shared_.emplace(kernel.shared_bytes, kernel.granule, Shadow::SharingScope::kBlock);
  }
}

void SimMemory::add_ranges(int64_t granule) {
  std::vector<const SimBuffer*> stored;
  for (const SimBuffer& each : buffers_) {
    if (each.stored && each.bytes > 0) stored.push_back(&each);
  }
  std::ranges::sort(stored, {}, &SimBuffer::begin);
  for (const SimBuffer* each : stored) {
    const auto over = reinterpret_cast<uintptr_t>(each->begin) % static_cast<uintptr_t>(granule);
    const std::byte* const begin = each->begin - over;
    const std::byte* const end = each->begin + each->bytes;
    if (!ranges_.empty() && begin < ranges_.back().end) {
      ranges_.back().end = std::max(ranges_.back().end, end);
    } else {
      ranges_.push_back({begin, end, {}});
    }
  }
  for (StoredRange& each : ranges_) {
    each.shadow.emplace(each.end - each.begin, granule, Shadow::SharingScope::kLaunch);
  }
}

Status SimMemory::look(const SimAccess& access, const std::byte* shared, const Toucher& by) {
  const auto in_shared = access.address >= shared && access.address < shared + kernel_.shared_bytes;
  if (is_variable(access.object) || (access.object == kUnknownObject && in_shared)) {
    return look_at_shared(access, access.address - shared, by);
  }
  return knows_sizes_ ? look_at_buffers(access, by) : Status();
}

Status SimMemory::look_at_shared(const SimAccess& access, int64_t offset, const Toucher& by) {
  int64_t begin = 0;
  int64_t size = kernel_.shared_bytes;
  std::string name = "its shared memory";
  if (is_variable(access.object)) {
    const SimVariable& variable = image_.variables[variable_of(access.object)];
    begin = variable.offset;
    size = variable.bytes;
    name = variable.name;
  }
  if (offset < begin || access.bytes > size - (offset - begin)) {
    return outside(access, name, offset - begin, size, by);
  }
  TENON_TRY(misaligned(access, name, offset - begin, by));
  const auto conflict = shared_->touch(offset, access.bytes, access.kind, by);
  if (!conflict) return {};
  return race(access, name, conflict->offset - begin, *conflict, by);
}

const SimMemory::SimBuffer* SimMemory::buffer_at(const std::byte* address) const {
  for (const SimBuffer& each : buffers_) {
    if (address >= each.begin && address < each.begin + each.bytes) return &each;
  }
  return nullptr;
}

Status SimMemory::look_at_buffers(const SimAccess& access, const Toucher& by) {
  const SimBuffer* const buffer = access.object == kUnknownObject
                                      ? buffer_at(access.address)
                                      : &buffers_[static_cast<size_t>(access.object)];
  if (buffer == nullptr) {
    return internal_error("{}thread {} of block {} {} {} bytes of no memory of the launch",
                          prefix_of(kernel_), by.thread, by.block, verb_of(access.kind),
                          access.bytes);
  }
  const int64_t offset = access.address - buffer->begin;
  if (offset < 0 || access.bytes > buffer->bytes - offset) {
    return outside(access, buffer->name, offset, buffer->bytes, by);
  }
  TENON_TRY(misaligned(access, buffer->name, offset, by));
  for (StoredRange& each : ranges_) {
    const std::byte* const begin = std::max(each.begin, access.address);
    const std::byte* const end = std::min(each.end, access.address + access.bytes);
    if (begin >= end) continue;
    const auto conflict = each.shadow->touch(begin - each.begin, end - begin, access.kind, by);
    if (!conflict) continue;
    return race(access, buffer->name, each.begin + conflict->offset - buffer->begin, *conflict, by);
  }
  return {};
}

Status SimMemory::misaligned(const SimAccess& access, const std::string& name, int64_t offset,
                             const Toucher& by) const {
  if (reinterpret_cast<uintptr_t>(access.address) % access.alignment == 0) return {};
  return internal_error(
      "{}thread {} of block {} {} {} bytes at {} of {}, aligned as no {} bytes are",
      prefix_of(kernel_), by.thread, by.block, verb_of(access.kind), access.bytes, offset, name,
      access.alignment);
}

Status SimMemory::outside(const SimAccess& access, const std::string& name, int64_t offset,
                          int64_t size, const Toucher& by) const {
  return internal_error("{}thread {} of block {} {} {} bytes at {} of {}, which has {} bytes",
                        prefix_of(kernel_), by.thread, by.block, verb_of(access.kind), access.bytes,
                        offset, name, size);
}

Status SimMemory::race(const SimAccess& access, const std::string& name, int64_t offset,
                       const RacingAccess& conflict, const Toucher& by) const {
  return internal_error(
      "{}a race: thread {} of block {} {} byte {} of {}, which thread {} of block {} {}; nothing "
      "orders the two",
      prefix_of(kernel_), by.thread, by.block, verb_of(access.kind), offset, name, conflict.thread,
      conflict.block, past_of(conflict.kind));
}

}  // namespace tenon::gpu
