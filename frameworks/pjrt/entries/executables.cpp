// The properties of executables.
#include "frameworks/pjrt/entries/executables.h"

#include "frameworks/pjrt/entries/table.h"

// Holders for bytes that getters return; they live until the caller calls the deleter.
struct PJRT_SerializedExecutable {
  std::string bytes;
};
struct PJRT_SerializedCompileOptions {};
struct PJRT_DeviceAssignmentSerialized {};

namespace tenon::pjrt {
namespace {

Status executable_serialize(PJRT_Executable_Serialize_Args& args) {
  const ExecutableState& state = *args.executable->state;
  auto holder = std::make_unique<PJRT_SerializedExecutable>();
  holder->bytes = save(state);
  args.serialized_bytes = holder->bytes.data();
  args.serialized_bytes_size = holder->bytes.size();
  args.serialized_executable_deleter = [](PJRT_SerializedExecutable* given) { delete given; };
  args.serialized_executable = holder.release();
  return {};
}

Status deserialize_and_load(PJRT_Executable_DeserializeAndLoad_Args& args) {
  using Args = PJRT_Executable_DeserializeAndLoad_Args;
  std::string_view options;
  if (has(args, &Args::overridden_serialized_compile_options_size)) {
    options = view_of(args.overridden_serialized_compile_options,
                      args.overridden_serialized_compile_options_size);
  }
  TENON_ASSIGN(args.loaded_executable,
               load(args.client->state,
                    view_of(args.serialized_executable, args.serialized_executable_size), options));
  return {};
}

// --- Properties of the compiled program

Status executable_destroy(PJRT_Executable_Destroy_Args& args) {
  delete args.executable;
  return {};
}

Status executable_name(PJRT_Executable_Name_Args& args) {
  args.executable_name = args.executable->state->name.c_str();
  args.executable_name_size = args.executable->state->name.size();
  return {};
}

Status num_replicas(PJRT_Executable_NumReplicas_Args& args) {
  args.num_replicas = 1;
  return {};
}

Status num_partitions(PJRT_Executable_NumPartitions_Args& args) {
  args.num_partitions = 1;
  return {};
}

Status num_outputs(PJRT_Executable_NumOutputs_Args& args) {
  args.num_outputs = args.executable->state->results.types.size();
  return {};
}

Status size_of_code(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args& args) {
  args.size_in_bytes = args.executable->state->code_bytes;
  return {};
}

Status cost_analysis(PJRT_Executable_GetCostAnalysis_Args& args) {
  args.properties = args.executable->state->costs.data();
  args.num_properties = args.executable->state->costs.size();
  return {};
}

// Callers ask for the size first, then for the text in memory of their own.
Status optimized_program(PJRT_Executable_OptimizedProgram_Args& args) {
  static constexpr std::string_view kFormat = "mlir";
  TENON_ASSIGN(const std::string text, optimized_text(*args.executable->state));
  PJRT_Program& program = *args.program;
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  if (program.code != nullptr) {
    if (program.code_size < text.size()) {
      return invalid_argument("the optimized program takes {} bytes, {} given", text.size(),
                              program.code_size);
    }
    text.copy(program.code, text.size());
  }
  program.code_size = text.size();
  return {};
}

Status output_memory_kinds(PJRT_Executable_OutputMemoryKinds_Args& args) {
  const Signature& results = args.executable->state->results;
  args.num_outputs = results.kinds.size();
  args.memory_kinds = results.kinds.data();
  args.memory_kind_sizes = results.kind_sizes.data();
  return {};
}

Status parameter_memory_kinds(PJRT_Executable_ParameterMemoryKinds_Args& args) {
  const Signature& parameters = args.executable->state->parameters;
  args.num_parameters = parameters.kinds.size();
  args.memory_kinds = parameters.kinds.data();
  args.memory_kind_sizes = parameters.kind_sizes.data();
  return {};
}

// The API declares these two pointers without const; callers only read.
Status output_element_types(PJRT_Executable_OutputElementTypes_Args& args) {
  const Signature& results = args.executable->state->results;
  args.output_types = const_cast<PJRT_Buffer_Type*>(results.types.data());
  args.num_output_types = results.types.size();
  return {};
}

Status output_dimensions(PJRT_Executable_OutputDimensions_Args& args) {
  const Signature& results = args.executable->state->results;
  args.num_outputs = results.ranks.size();
  args.dims = results.dims.data();
  args.dim_sizes = results.ranks.data();
  return {};
}

Status executable_fingerprint(PJRT_Executable_Fingerprint_Args& args) {
  args.executable_fingerprint = args.executable->state->fingerprint.c_str();
  args.executable_fingerprint_size = args.executable->state->fingerprint.size();
  return {};
}

Status memory_statistics(PJRT_Executable_GetCompiledMemoryStats_Args& args) {
  using Args = PJRT_Executable_GetCompiledMemoryStats_Args;
  const ExecutableState& state = *args.executable->state;
  args.generated_code_size_in_bytes = state.code_bytes;
  args.argument_size_in_bytes = state.parameters.bytes;
  args.output_size_in_bytes = state.results.bytes;
  args.alias_size_in_bytes = state.alias_bytes;
  args.temp_size_in_bytes = state.temporary_bytes;
  args.host_generated_code_size_in_bytes = 0;
  args.host_argument_size_in_bytes = 0;
  args.host_output_size_in_bytes = 0;
  args.host_alias_size_in_bytes = 0;
  args.host_temp_size_in_bytes = 0;
  const int64_t total = state.parameters.bytes + state.results.bytes - state.alias_bytes +
                        state.temporary_bytes + state.code_bytes;
  set_if_known(args, &Args::peak_memory_in_bytes, total);
  set_if_known(args, &Args::total_size_in_bytes, total);
  set_if_known(args, &Args::total_allocation_bytes, total);
  set_if_known(args, &Args::indefinite_allocations, int64_t{0});
  set_if_known(args, &Args::peak_unpadded_heap_bytes, total);
  return {};
}

Status compile_options(PJRT_Executable_GetCompileOptions_Args& args) {
  args.serialized_bytes = args.executable->state->options.data();
  args.serialized_bytes_size = args.executable->state->options.size();
  args.serialized_compile_options = new PJRT_SerializedCompileOptions();
  args.serialized_compile_options_deleter = [](PJRT_SerializedCompileOptions* given) {
    delete given;
  };
  return {};
}

// --- Properties of the loaded executable

Status loaded_destroy(PJRT_LoadedExecutable_Destroy_Args& args) {
  delete args.executable;
  return {};
}

Status get_executable(PJRT_LoadedExecutable_GetExecutable_Args& args) {
  args.executable = new PJRT_Executable{args.loaded_executable->state};
  return {};
}

Status executable_addressable_devices(PJRT_LoadedExecutable_AddressableDevices_Args& args) {
  args.addressable_devices = &args.executable->state->device;
  args.num_addressable_devices = 1;
  return {};
}

Status logical_device_ids(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args& args) {
  static PJRT_LogicalDeviceIds first = {0, 0};  // Callers only read.
  args.addressable_device_logical_ids = &first;
  args.num_addressable_device_logical_ids = 1;
  return {};
}

Status device_assignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args& args) {
  args.serialized_bytes = args.executable->state->device_assignment.data();
  args.serialized_bytes_size = args.executable->state->device_assignment.size();
  args.serialized_device_assignment = new PJRT_DeviceAssignmentSerialized();
  args.serialized_device_assignment_deleter = [](PJRT_DeviceAssignmentSerialized* given) {
    delete given;
  };
  return {};
}

Status loaded_fingerprint(PJRT_LoadedExecutable_Fingerprint_Args& args) {
  args.executable_fingerprint = args.executable->state->fingerprint.c_str();
  args.executable_fingerprint_size = args.executable->state->fingerprint.size();
  return {};
}

Status loaded_delete(PJRT_LoadedExecutable_Delete_Args& args) {
  std::shared_ptr<const runtime::Executable> freed;  // Destroyed outside the lock.
  const std::lock_guard lock(args.executable->mutex);
  std::swap(freed, args.executable->executable);
  return {};
}

Status executable_is_deleted(PJRT_LoadedExecutable_IsDeleted_Args& args) {
  const std::lock_guard lock(args.executable->mutex);
  args.is_deleted = args.executable->executable == nullptr;
  return {};
}

}  // namespace

void add_executables(PJRT_Api& api) {
  api.PJRT_Executable_Destroy = entry<executable_destroy>;
  api.PJRT_Executable_Name = entry<executable_name>;
  api.PJRT_Executable_NumReplicas = entry<num_replicas>;
  api.PJRT_Executable_NumPartitions = entry<num_partitions>;
  api.PJRT_Executable_NumOutputs = entry<num_outputs>;
  api.PJRT_Executable_SizeOfGeneratedCodeInBytes = entry<size_of_code>;
  api.PJRT_Executable_GetCostAnalysis = entry<cost_analysis>;
  api.PJRT_Executable_OutputMemoryKinds = entry<output_memory_kinds>;
  api.PJRT_Executable_ParameterMemoryKinds = entry<parameter_memory_kinds>;
  api.PJRT_Executable_OptimizedProgram = entry<optimized_program>;
  api.PJRT_Executable_Serialize = entry<executable_serialize>;
  api.PJRT_Executable_DeserializeAndLoad = entry<deserialize_and_load>;
  api.PJRT_Executable_OutputElementTypes = entry<output_element_types>;
  api.PJRT_Executable_OutputDimensions = entry<output_dimensions>;
  api.PJRT_Executable_Fingerprint = entry<executable_fingerprint>;
  api.PJRT_Executable_GetCompiledMemoryStats = entry<memory_statistics>;
  api.PJRT_Executable_GetCompileOptions = entry<compile_options>;
  api.PJRT_LoadedExecutable_Destroy = entry<loaded_destroy>;
  api.PJRT_LoadedExecutable_GetExecutable = entry<get_executable>;
  api.PJRT_LoadedExecutable_AddressableDevices = entry<executable_addressable_devices>;
  api.PJRT_LoadedExecutable_GetDeviceAssignment = entry<device_assignment>;
  api.PJRT_LoadedExecutable_Fingerprint = entry<loaded_fingerprint>;
  api.PJRT_LoadedExecutable_Delete = entry<loaded_delete>;
  api.PJRT_LoadedExecutable_IsDeleted = entry<executable_is_deleted>;
  api.PJRT_LoadedExecutable_AddressableDeviceLogicalIds = entry<logical_device_ids>;
}

}  // namespace tenon::pjrt
