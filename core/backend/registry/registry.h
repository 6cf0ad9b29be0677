// core/backend/registry/: finds backends: those of this process, and plug-ins by name or path.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/backend/adapter/adapter.h"

namespace tenon::backend {

/// Opens a shared library and imports its backend. The library stays loaded until the process ends.
/// Errors: kNotFound (no such file); kFailedPrecondition with the reason: not a library
/// (plugin_file.h), no symbol tenon_plugin, another version, or a backend that cannot start, with
/// its own reason.
Result<std::shared_ptr<Backend>> load_plugin(const std::string& path);

/// The name of a device on the command line or in TENON_DEVICE: "interp", "chip:2",
/// "/opt/libnpu.so", "/opt/libnpu.so:1".
struct DeviceName {
  std::string backend;  ///< A name or a path; a path has a '/'.
  size_t index = 0;
};
/// Errors: an invalid number.
Result<DeviceName> parse_device_name(std::string_view text);

struct Listed {
  std::string name;    ///< The backend's name; for a plug-in that failed, its file's.
  std::string source;  ///< "built in", or the plug-in's path.
  Result<std::shared_ptr<Backend>> backend;
};

class Registry {
 public:
  /// Contains `interp`, and the plug-ins of TENON_PLUGIN_PATH: files, and folders of files *.so,
  /// separated by colons.
  static Registry& instance();

  Registry();
  explicit Registry(std::string plugin_path);

  /// Errors: kAlreadyExists.
  Status add(std::string name, BackendFactory make);
  /// Finds a backend by name or path; each is made once. Errors: those of load_plugin; kNotFound,
  /// with the known names; kAlreadyExists, with both files, if two plug-ins have the same name.
  Result<std::shared_ptr<Backend>> get(const std::string& name_or_path);
  /// All backends, including those that fail to start. A plug-in of TENON_PLUGIN_PATH is started in
  /// a child process first; if it crashes, exits or hangs there, it is listed with that error.
  std::vector<Listed> list();
  /// Whether a backend of this name was added, not found as a plug-in.
  bool is_built_in(std::string_view name);

 private:
  struct RegistryEntry {
    std::string source;
    BackendFactory make;
    std::optional<Result<std::shared_ptr<Backend>>> made;
  };
  Result<std::shared_ptr<Backend>> make(RegistryEntry& entry);
  enum class Start : uint8_t { kDirect, kProbed };  // In a child process first (probe.h).
  Result<std::shared_ptr<Backend>> get_file(const std::string& path, Start start);
  void look_for_plugins();

  std::mutex mutex_;
  const std::string plugin_path_;
  bool looked_ = false;
  std::map<std::string, RegistryEntry, std::less<>> entries_;  // By name.
  std::map<std::string, RegistryEntry> files_;                 // By absolute path.
};

}  // namespace tenon::backend
