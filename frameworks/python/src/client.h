// frameworks/python/: the Python package `tenon`, which compiles programs and runs them.
// frameworks/python/src/: its extension module, which calls a PJRT plug-in.
//
// The plug-in is Tenon's own by default: devices, layers and options are those of docs/pjrt.md.
// This file: clients, devices, arrays and executables: handles of a plug-in with the lifetimes of
// Python.
//
// Thread-safety: everything, from any thread. Calls that wait or compile run without Python's lock.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "frameworks/client/plugin.h"
#include "types.h"

namespace tenon::python {

using client::Plugin;
using client::PluginError;
using client::sized;

class LentArguments;
class ResultBuffers;

using OptionValue = std::variant<bool, int64_t, double, std::string>;
using Options = std::map<std::string, OptionValue>;

/// A client of the plug-in. Arrays and executables keep it.
class PluginClient {
 public:
  PluginClient(std::shared_ptr<const Plugin> plugin, const Options& options);
  ~PluginClient();
  PluginClient(const PluginClient&) = delete;
  PluginClient& operator=(const PluginClient&) = delete;

  const Plugin& plugin() const { return *plugin_; }
  std::shared_ptr<const Plugin> shared_plugin() const { return plugin_; }
  PJRT_Client* handle() const { return handle_; }
  /// Throws IndexError.
  PJRT_Device* device(size_t index) const;
  size_t device_count() const { return devices_.size(); }

 private:
  std::shared_ptr<const Plugin> plugin_;
  PJRT_Client* handle_ = nullptr;
  std::vector<PJRT_Device*> devices_;
};
using Shared = std::shared_ptr<const PluginClient>;

struct ClientDevice {
  Shared client;
  size_t index = 0;
  int id() const;
  nb::str kind() const;
  nb::str name() const;
  nb::dict attributes() const;
};

/// An array on a device.
class Array {
 public:
  Array(Shared client, PJRT_Buffer* buffer, std::shared_ptr<const ArrayType> type);
  Array(Array&& other) noexcept;
  Array& operator=(Array&&) = delete;
  ~Array();

  PJRT_Buffer* handle() const { return buffer_; }
  const std::vector<int64_t>& dims() const { return type_->dims; }
  const TypeInfo& info() const { return *type_->info; }
  int64_t bytes() const { return type_->bytes; }
  bool is_deleted() const;
  /// Waits for the contents; throws the error of the work that makes them.
  void wait() const;
  void remove();
  /// An array of numpy: this one's memory, read-only, if the host sees it, else a copy. `self`: the
  /// Python object of this array.
  nb::object to_numpy(nb::handle self) const;
  /// A view for DLPack. Throws BufferError if the host does not see the memory.
  nb::object to_dlpack(nb::handle self) const;
  Array copy_to(const ClientDevice& device) const;

 private:
  const void* visible_memory() const;
  nb::object owner_of_memory() const;

  Shared client_;
  PJRT_Buffer* buffer_ = nullptr;
  std::shared_ptr<const ArrayType> type_;
};

/// The type of a buffer, as the plug-in states it. Throws PluginError, and TypeError for types that
/// numpy and ml_dtypes lack.
std::shared_ptr<const ArrayType> type_of(const Plugin& plugin, PJRT_Buffer* buffer);

/// Puts an array of the host on a device. `in_place`: its memory is used as it is, if the device
/// can; it must not change then while this array lives.
Array put(const Shared& client, nb::handle object, size_t device, bool in_place);

/// A compiled program, loaded on its device.
class PluginProgram {
 public:
  PluginProgram(Shared client, PJRT_LoadedExecutable* loaded, size_t device);
  PluginProgram(PluginProgram&& other) noexcept;
  PluginProgram& operator=(PluginProgram&&) = delete;
  ~PluginProgram();

  /// Runs the program. Arrays of the host are used in place; the call returns when they have been
  /// read, other calls return before the work is done. `like`: None for a list of arrays, or the
  /// type of the results, which has DLPack's exchange table; the call waits for them then.
  nb::list run(nb::handle given, nb::handle like);
  nb::str name() const;
  nb::str text() const;
  nb::bytes serialize() const;
  nb::dict memory() const;
  nb::list outputs() const;

 private:
  void execute(std::vector<PJRT_Buffer*>& arguments, LentArguments& lent,
               ResultBuffers& results) const;
  nb::list arrays_of(ResultBuffers& results) const;
  std::vector<std::shared_ptr<const ArrayType>> asked_types(ResultBuffers& results) const;

  Shared client_;
  PJRT_LoadedExecutable* loaded_ = nullptr;
  PJRT_Executable* executable_ = nullptr;
  size_t device_;
  size_t results_ = 0;
  /// The types of the results; empty if unknown.
  std::vector<std::shared_ptr<const ArrayType>> types_;
};

PluginProgram compile(const Shared& client, std::string_view program, std::string_view options,
                      size_t device);
PluginProgram load(const Shared& client, std::string_view bytes, std::string_view options,
                   size_t device);

}  // namespace tenon::python
