// The device of a provider, behind a PJRT plug-in, and what lies on it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frameworks/client/plugin.h"
#include "frameworks/onnxruntime/src/options.h"
#include "hlo/types/type.h"

namespace tenon::ort {

/// A handle of the plug-in that ends with this object.
template <class Handle, class Args, Handle* Args::* kMember,
          PJRT_Error* (*PJRT_Api::*kDestroy)(Args*)>
class Owned {
 public:
  Owned() = default;
  Owned(const client::Plugin* plugin, Handle* handle) : plugin_(plugin), handle_(handle) {}
  Owned(Owned&& other) noexcept
      : plugin_(other.plugin_), handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(plugin_, other.plugin_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() { reset(); }

  Handle* get() const { return handle_; }
  Handle* release() { return std::exchange(handle_, nullptr); }
  void reset() {
    if (handle_ == nullptr) return;
    auto args = client::sized<Args>();
    args.*kMember = std::exchange(handle_, nullptr);
    plugin_->end(kDestroy, args);
  }

 private:
  const client::Plugin* plugin_ = nullptr;
  Handle* handle_ = nullptr;
};
using OwnedClient = Owned<PJRT_Client, PJRT_Client_Destroy_Args, &PJRT_Client_Destroy_Args::client,
                          &PJRT_Api::PJRT_Client_Destroy>;
using OwnedBuffer = Owned<PJRT_Buffer, PJRT_Buffer_Destroy_Args, &PJRT_Buffer_Destroy_Args::buffer,
                          &PJRT_Api::PJRT_Buffer_Destroy>;
using OwnedEvent = Owned<PJRT_Event, PJRT_Event_Destroy_Args, &PJRT_Event_Destroy_Args::event,
                         &PJRT_Api::PJRT_Event_Destroy>;
using OwnedExecutable = Owned<PJRT_LoadedExecutable, PJRT_LoadedExecutable_Destroy_Args,
                              &PJRT_LoadedExecutable_Destroy_Args::executable,
                              &PJRT_Api::PJRT_LoadedExecutable_Destroy>;

/// A tensor in the host's memory.
struct HostTensor {
  const void* data = nullptr;
  ElementType type = ElementType::kF32;
  std::span<const int64_t> dims;
};

/// A device, opened when the first session uses it and shared by all with the same options.
///
/// Thread-safety: everything, from any thread.
class ProviderDevice {
 public:
  /// Throws PluginError, and OrtFailure.
  static std::shared_ptr<const ProviderDevice> open(const ProviderOptions& options,
                                                    const std::string& default_library);

  const client::Plugin& plugin() const { return *plugin_; }
  PJRT_Device* handle() const { return device_; }
  /// The plug-in's version with its device: programs compiled for another are not taken.
  const std::string& version() const { return version_; }
  /// Whether the host sees no arrays of the device, so that they are copied.
  bool has_own_memory() const { return has_own_memory_; }

  /// Puts an array on the device. `done`, if given, gets the event after which the host's memory is
  /// not needed any more; without it, the call waits for that.
  OwnedBuffer put(const HostTensor& array, OwnedEvent* done) const;
  /// Copies the contents of a buffer to the host: in this call, where the host sees the device's
  /// memory, else until the event that it returns.
  OwnedEvent get(PJRT_Buffer* buffer, void* data, size_t size) const;
  /// The same bytes as an array of another type and other sizes, copied by the device.
  OwnedBuffer bitcast(PJRT_Buffer* buffer, ElementType type, const Dims& dims) const;
  /// Waits for the contents of a buffer. Throws PluginError for the error of what makes them.
  void await(PJRT_Buffer* buffer) const;
  /// Throws PluginError for an error in the program.
  OwnedExecutable compile(std::string_view program, const std::string& options) const;
  OwnedExecutable load(std::string_view serialized, const std::string& options) const;
  std::string serialize(PJRT_LoadedExecutable* executable) const;
  /// Options of `compile` as the plug-in takes them.
  std::string compile_options(const ProviderOptions& options) const;

 private:
  ProviderDevice() = default;

  std::shared_ptr<const client::Plugin> plugin_;
  OwnedClient client_;
  PJRT_Device* device_ = nullptr;
  int id_ = 0;
  std::string version_;
  bool has_own_memory_ = false;
};

}  // namespace tenon::ort
