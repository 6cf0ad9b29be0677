// Executables: a compiled program with its source and compile options.
#pragma once

#include <string>
#include <vector>

#include "frameworks/pjrt/c_api/layouts_extension.h"
#include "frameworks/pjrt/objects.h"

namespace tenon::pjrt {

struct PjrtCompileOptions;

/// The layout of row-major arrays of that rank, which stays for the process.
PJRT_Layouts_MemoryLayout* row_major_layout(size_t rank);

/// The types of a list of parameters or results, in the format of the getters.
struct Signature {
  std::vector<runtime::MemoryKind> memory;  ///< The kind of memory of each array.
  std::vector<PJRT_Buffer_Type> types;
  std::vector<int64_t> dims;  ///< The dimensions of all arrays, concatenated.
  std::vector<size_t> ranks;
  std::vector<PJRT_Layouts_MemoryLayout*> layouts;  ///< Shared by all executables.
  std::vector<const char*> kinds;
  std::vector<size_t> kind_sizes;
  int64_t bytes = 0;
};

/// The immutable state of an executable, which all its handles share.
struct ExecutableState {
  std::shared_ptr<ClientState> client;  ///< Null if it was compiled for a topology.
  PJRT_Device* device = nullptr;        ///< Null likewise.
  std::string target;                   ///< The kind of device that it is for.
  std::string name;
  std::string fingerprint;
  std::string code;     ///< The program as the caller passed it.
  std::string options;  ///< A CompileOptionsProto.
  /// Whether an argument may have other sizes with as many elements. TensorFlow, which sends HLO
  /// protos, reshapes arrays without telling the device.
  bool takes_reshaped = false;
  std::string device_assignment;
  Signature parameters;
  Signature results;
  std::vector<PJRT_NamedValue> costs;
  StepSummary steps;
  /// Expired once all loaded executables are destroyed.
  std::weak_ptr<const runtime::Executable> executable;
  std::string unloaded;    ///< UnloadedModule::saved, if it was compiled for a topology.
  int64_t code_bytes = 0;  ///< As in CompiledModule, this and the next member.
  int64_t temporary_bytes = 0;
  int64_t alias_bytes = 0;  ///< Size of the results in the memory of donated arguments.
};

void add_array(Signature& signature, const Shape& shape, runtime::MemoryKind kind);

/// The loaded executable of a state whose source, options, device, name and signatures are set.
PJRT_LoadedExecutable* finish(std::shared_ptr<ExecutableState> state, CompiledModule compiled);

/// The index of the device, of so many, that the options name. Errors: kUnimplemented for more than
/// one.
Result<size_t> device_of(const PjrtCompileOptions& options, size_t devices);

/// The program behind the rewrite rules, as StableHLO text, for people and tools; fusions and
/// kernels, into which lowering turns it, are not StableHLO. Every call prints it again. Errors:
/// none for a program that was compiled.
Result<std::string> optimized_text(const ExecutableState& state);

/// The serial form: the source, and the compiled form as long as some handle has it loaded.
std::string save(const ExecutableState& state);
/// Loads the compiled form, or compiles the source again if the compiled form is for another
/// compiler, target or release, or for other options than `options` (empty: the saved ones).
/// Errors: those of the reader and of compile; kFailedPrecondition for devices of another kind.
Result<PJRT_LoadedExecutable*> load(const std::shared_ptr<ClientState>& client,
                                    std::string_view bytes, std::string_view options);

/// Compiles StableHLO, an artifact or text, for the one device that the options name. Errors: those
/// of the import and of the driver; kUnimplemented for programs for several devices.
Result<PJRT_LoadedExecutable*> compile(const std::shared_ptr<ClientState>& client,
                                       std::string_view code, std::string_view options);

/// The same for a device of a topology, which nobody needs to have opened.
Result<PJRT_Executable*> compile(const PJRT_TopologyDescription& topology, std::string_view code,
                                 std::string_view options);

}  // namespace tenon::pjrt

struct PJRT_Executable {
  std::shared_ptr<const tenon::pjrt::ExecutableState> state;
};

struct PJRT_LoadedExecutable {
  std::shared_ptr<const tenon::pjrt::ExecutableState> state;
  std::mutex mutex;
  /// Null after deletion.
  std::shared_ptr<const tenon::runtime::Executable> executable;
};
