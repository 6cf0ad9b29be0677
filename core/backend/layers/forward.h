// A layer that forwards every call: the base class of layers.
#pragma once

#include "core/backend/backend.h"

namespace tenon::backend {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}

  Result<ModuleHandle> load(std::string_view binary, Kernels kernels) override {
    return inner_->load(binary, kernels);
  }
  void unload(ModuleHandle module) override { inner_->unload(module); }
  Result<MemoryHandle> allocate(uint32_t space, int64_t bytes) override {
    return inner_->allocate(space, bytes);
  }
  void free(MemoryHandle memory) override { inner_->free(memory); }
  Status copy(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
              int64_t bytes) override {
    return inner_->copy(queue, destination, source, bytes);
  }
  Status launch(uint32_t queue, const KernelLaunch& launch) override {
    return inner_->launch(queue, launch);
  }
  Result<EventHandle> record(uint32_t queue) override { return inner_->record(queue); }
  Status wait(uint32_t queue, EventHandle event) override { return inner_->wait(queue, event); }
  Result<bool> await(EventHandle event, int64_t timeout) override {
    return inner_->await(event, timeout);
  }
  void release(EventHandle event) override { inner_->release(event); }
  Status fill(uint32_t queue, const MemoryAddress& destination, int64_t bytes,
              std::span<const std::byte> pattern) override {
    return inner_->fill(queue, destination, bytes, pattern);
  }
  Status copy_box(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
                  const Box& box) override {
    return inner_->copy_box(queue, destination, source, box);
  }
  Status call(uint32_t queue, const LibraryCallLaunch& call) override {
    return inner_->call(queue, call);
  }
  Status pack(uint32_t queue, std::string_view plan, uint32_t operand,
              const MemoryAddress& destination, const MemoryAddress& source) override {
    return inner_->pack(queue, plan, operand, destination, source);
  }
  Result<std::byte*> map(MemoryHandle memory) override { return inner_->map(memory); }
  Result<MemoryHandle> import_memory(uint32_t space, std::span<const std::byte> host) override {
    return inner_->import_memory(space, host);
  }
  Result<EventTimes> event_times(EventHandle event) override { return inner_->event_times(event); }
  Status abort() override { return inner_->abort(); }
  Result<std::vector<Statistic>> statistics() override { return inner_->statistics(); }

 protected:
  Device& inner() { return *inner_; }
  /// Closes the inner device. Objects that a layer passed to it are in use until then, so such a
  /// layer calls this first in its destructor.
  void close() { inner_.reset(); }

 private:
  std::unique_ptr<Device> inner_;
};

class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(std::shared_ptr<Backend> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  std::string_view version() const override { return inner_->version(); }
  Result<std::vector<DeviceInfo>> devices() override { return inner_->devices(); }
  Result<std::unique_ptr<Device>> open(size_t index) override { return inner_->open(index); }
  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    return inner_->compile(target, kernels);
  }
  Result<std::string> source(const TargetInfo& target, Kernels kernels) override {
    return inner_->source(target, kernels);
  }
  Result<LibraryCallPlan> plan(const TargetInfo& target, const LibraryCallSite& site) override {
    return inner_->plan(target, site);
  }
  bool takes_segments() const override { return inner_->takes_segments(); }
  Result<std::string> compile_segment(const TargetInfo& target,
                                      const program::Program& segment) override {
    return inner_->compile_segment(target, segment);
  }
  const Backend& root() const override { return inner_->root(); }

 protected:
  Backend& inner() { return *inner_; }

 private:
  const std::shared_ptr<Backend> inner_;
};

}  // namespace tenon::backend
