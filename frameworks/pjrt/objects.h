// The objects behind the handles of the PJRT C API.
//
// A client's devices, memories and topology are in its ClientState, which buffers and executables
// share: they may be used and destroyed after the client.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/client.h"
#include "frameworks/pjrt/c_api/pjrt_c_api.h"
#include "frameworks/pjrt/engine.h"

/// Handles are structures of the global namespace, as the C API declares them.
struct PJRT_Event {
  tenon::runtime::Event event;
  /// Sets an event that the caller made; null for others.
  std::unique_ptr<tenon::runtime::Promise> promise = nullptr;
};

struct PJRT_DeviceDescription {
  int id = 0;
  std::string kind;
  std::string text;
  std::string debug_text;
  std::string backend_device;  ///< Attribute: the backend's own name for it.
  std::vector<PJRT_NamedValue> attributes;
};

struct PJRT_Device {
  tenon::pjrt::Engine* engine = nullptr;  ///< The client's.
  size_t place = 0;                       ///< Index among the client's devices.
  PJRT_DeviceDescription description;
  std::vector<PJRT_Memory*> memories;  ///< By runtime::MemoryKind; the first is the default.

  /// The open device; if it is lost, it is opened again.
  tenon::Result<std::shared_ptr<tenon::runtime::Device>> live() const {
    return engine->live_device(place);
  }
  const std::shared_ptr<tenon::runtime::Device>& first() const { return engine->devices()[place]; }
};

struct PJRT_TopologyDescription {
  std::string platform_name;
  std::string platform_version;
  tenon::pjrt::NamedDevices named;
  std::vector<PJRT_DeviceDescription*> descriptions;
  /// Owned by a topology without a client.
  std::vector<std::unique_ptr<PJRT_DeviceDescription>> owned_descriptions;
  std::string text;  ///< Names the release, the devices and their targets.
  std::string serialized;
  uint64_t fingerprint = 0;
  bool belongs_to_client = false;
};

namespace tenon::pjrt {

/// The platform of clients without the create option `platform_name`. Functions of the host are
/// registered under it for all clients.
inline constexpr std::string_view kPlatformName = "tenon";

/// Device memory or host memory of one device. `vtable` lets the caller attach data to it.
struct MemorySpace : PJRT_Memory {
  MemorySpace();
  ~MemorySpace();
  MemorySpace(const MemorySpace&) = delete;
  MemorySpace& operator=(const MemorySpace&) = delete;

  int id = 0;
  runtime::MemoryKind kind = runtime::MemoryKind::kDevice;
  PJRT_Device* device = nullptr;
  std::string text;

  struct UserData {
    void* data = nullptr;
    void (*destroy)(void*) = nullptr;
  };
  std::mutex mutex;
  std::map<const void*, UserData> user_data;
};

inline MemorySpace& unwrap(PJRT_Memory* memory) { return *static_cast<MemorySpace*>(memory); }

struct ClientState {
  std::shared_ptr<Engine> engine;  ///< Shared with clients that were created with its options.
  std::string platform_name;
  std::string platform_version;
  std::vector<std::unique_ptr<PJRT_Device>> owned_devices;
  std::vector<std::unique_ptr<MemorySpace>> owned_memories;
  std::vector<PJRT_Device*> devices;
  std::vector<PJRT_Memory*> memories;
  PJRT_TopologyDescription topology;
  std::mutex mapped_mutex;
  std::set<void*> mapped;  ///< Memory of the host that the caller has declared.
};

/// The create options of a client, or of a topology without one.
struct CreateOptions {
  EngineOptions engine;
  std::string platform_name = std::string(kPlatformName);
};
/// Options override the environment. Frameworks also send options of other plug-ins, which are
/// ignored. Errors: values of another type, or that are no numbers.
Result<CreateOptions> create_options_of(const PJRT_NamedValue* values, size_t count);

/// The release and the engine.
std::string platform_version_of(const NamedDevices& named);

/// Describes a device of that index.
void describe(const NamedDevices& named, size_t device, PJRT_DeviceDescription& description);
/// Creates the descriptions of the devices of `state.engine`.
void describe_devices(ClientState& state);
void describe_topology(ClientState& state, const CreateOptions& options);

/// A character array as a string view; it may be null if empty.
inline std::string_view view_of(const char* text, size_t size) {
  return size == 0 ? std::string_view() : std::string_view(text, size);
}

/// A value; the name and text must live as long as it does.
PJRT_NamedValue named(std::string_view name, std::string_view value);
PJRT_NamedValue named(std::string_view name, const int64_t* values, size_t count);
PJRT_NamedValue named(std::string_view name, float value);

}  // namespace tenon::pjrt

struct PJRT_Client {
  std::shared_ptr<tenon::pjrt::ClientState> state;
};
