// Options of a session: the entries `ep.NAME.KEY` of its configuration.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace tenon::ort {

struct ProviderOptions {
  std::string device;  ///< As TENON_DEVICE names it.
  std::string layers;
  std::string time_limit;      ///< Milliseconds, in digits; empty: as TENON_TIME_LIMIT says.
  std::string plugin_library;  ///< The PJRT plug-in; empty: the one beside this library.
  bool strict = false;         ///< A node that is left to ONNX Runtime is an error.
  bool strict_device = false;  ///< A step that the device leaves to the host is an error.
  bool native_math = false;
  bool shape_values = true;   ///< Programs are made for the values of inputs that decide shapes.
  bool small_groups = false;  ///< Groups that are not worth a call are claimed too.
  int64_t cache_size = 16;    ///< Programs that a group keeps.
  int64_t constant_elements = 4096;  ///< Constants of more elements are kept on the device.
  /// But for those that the device's compiler lays out: so many elements in a session.
  int64_t prepared_elements = 1 << 25;
  std::string cache_directory;  ///< For compiled programs; empty: none are kept.
  std::string dump_directory;   ///< For the StableHLO text of each program.
  std::string report_file;      ///< For what the session did, written at its end.
};

/// The names of the provider and of its device that a registered name stands for.
struct ProviderName {
  std::string provider;
  std::string device;
};

/// `tenon` is the default device; `tenon-gpu-sim` and `TenonGpu` are devices by their names; any
/// other name is that of a maker's device, whose plug-in may lie in `folder`. `acme=./libnpu.so` is
/// a name and its device.
ProviderName provider_name_of(std::string_view registered, const std::string& folder);

/// Options from the entries of a session whose keys begin with `ep.`, the provider's name in small
/// letters and a point. Errors name what there is.
Result<ProviderOptions> provider_options_of(const std::map<std::string, std::string>& entries,
                                            const ProviderName& name);

/// Environment, or `otherwise` if it is not set or empty.
std::string environment_or(const char* name, std::string otherwise);

}  // namespace tenon::ort
