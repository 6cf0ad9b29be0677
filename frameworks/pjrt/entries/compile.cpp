// Compilation of programs to executables.
#include "core/base/digest.h"
#include "frameworks/pjrt/c_api/messages.h"
#include "frameworks/pjrt/entries/executables.h"
#include "frameworks/pjrt/entries/host_transfers.h"
#include "frameworks/pjrt/entries/table.h"
#include "frameworks/pjrt/profile/profiled.h"
#include "frameworks/pjrt/program/compile_options.h"
#include "frameworks/pjrt/program/tokens.h"
#include "frameworks/pjrt/types.h"
#include "hlo/builder/builder.h"
#include "hlo/import/import.h"
#include "hlo/ops/mhlo_names.h"
#include "hlo/passes/pass.h"
#include "hlo/proto/proto.h"
#include "hlo/text/printer.h"

namespace tenon::pjrt {
namespace {

constexpr const char* kMemoryKind = "mhlo.memory_kind";
constexpr const char* kLayoutMode = "mhlo.layout_mode";

Result<runtime::MemoryKind> memory_kind_of(const hlo::Dict& attributes) {
  const hlo::Attribute* found = find(attributes, kMemoryKind);
  const auto* name = found == nullptr ? nullptr : found->get<std::string>();
  for (const auto kind : {runtime::MemoryKind::kDevice, runtime::MemoryKind::kPinnedHost}) {
    if (name == nullptr || *name == runtime::name_of(kind)) return kind;
  }
  return unimplemented("there is no memory of kind '{}'; there are device and pinned_host", *name);
}

// The layout that a program requests is "default", "auto" or the order of dimensions: "{1,0}".
Status check_layout_mode(const hlo::Dict& attributes, size_t rank) {
  const hlo::Attribute* found = find(attributes, kLayoutMode);
  const auto* mode = found == nullptr ? nullptr : found->get<std::string>();
  if (mode == nullptr || *mode == "default" || *mode == "auto") return {};
  if (*mode == fmt::format("{{{}}}", dims_to_string(row_major_order(rank)))) return {};
  return unimplemented("layout {}: arrays lie dense and row-major", *mode);
}

Status add_to(Signature& signature, const hlo::Type& type, const std::vector<hlo::Dict>& all,
              size_t index) {
  if (!type.is_tensor() || type.is_quantized() || !type.shape().is_static()) {
    return unimplemented("a parameter or result of type {}", type.to_string());
  }
  static const hlo::Dict kNothing;
  const hlo::Dict& attributes = index < all.size() ? all[index] : kNothing;
  TENON_TRY(check_layout_mode(attributes, type.dims().size()));
  TENON_ASSIGN(const runtime::MemoryKind kind, memory_kind_of(attributes));
  add_array(signature, type.shape(), kind);
  return {};
}

Status add_signatures(const hlo::Computation& entry, ExecutableState& state) {
  for (size_t i = 0; i < entry.parameter_count(); ++i) {
    TENON_TRY(add_to(state.parameters, entry.parameter(i).type(), entry.parameter_attributes(), i));
  }
  const std::vector<hlo::Type> results = entry.result_types();
  for (size_t i = 0; i < results.size(); ++i) {
    TENON_TRY(add_to(state.results, results[i], entry.result_attributes(), i));
  }
  return {};
}

}  // namespace

void add_array(Signature& signature, const Shape& shape, runtime::MemoryKind kind) {
  const std::string_view kind_name = runtime::name_of(kind);
  const Dims& dims = shape.dims();
  signature.memory.push_back(kind);
  signature.types.push_back(buffer_type_of(shape.element_type()));
  signature.dims.insert(signature.dims.end(), dims.begin(), dims.end());
  signature.ranks.push_back(dims.size());
  signature.layouts.push_back(row_major_layout(dims.size()));
  signature.kinds.push_back(kind_name.data());
  signature.kind_sizes.push_back(kind_name.size());
  signature.bytes += shape.byte_size();
}

Result<size_t> device_of(const PjrtCompileOptions& options, size_t devices) {
  if (options.replicas != 1 || options.partitions != 1) {
    return unimplemented(
        "a program of {} replicas and {} partitions: programs run on one device, and none is "
        "partitioned yet",
        options.replicas, options.partitions);
  }
  const int64_t id = options.devices.empty() ? 0 : options.devices.front();
  if (options.devices.size() > 1 || id < 0 || id >= static_cast<int64_t>(devices)) {
    return invalid_argument("a device assignment to {} devices, the first {}; there are {}",
                            options.devices.size(), id, devices);
  }
  return static_cast<size_t>(id);
}

namespace {

void set_costs(ExecutableState& state, const StepSummary& steps) {
  state.steps = steps;
  state.costs = {named("flops", static_cast<float>(steps.flops)),
                 named("transcendentals", static_cast<float>(steps.transcendentals)),
                 named("bytes accessed", static_cast<float>(steps.bytes)),
                 named("steps", static_cast<float>(steps.steps)),
                 named("steps on the host", static_cast<float>(steps.host_steps))};
}

void set_fingerprint(ExecutableState& state, const PJRT_TopologyDescription& topology) {
  state.fingerprint = serial::digest_of(fmt::format("{} {} {}", serial::digest_of(topology.text),
                                                    serial::digest_of(state.code),
                                                    serial::digest_of(state.options)));
}

// A program that was read, and what is known of it before it is compiled.
struct ReadProgram {
  std::shared_ptr<ExecutableState> state = std::make_shared<ExecutableState>();
  PjrtCompileOptions options;
  size_t device = 0;
  std::unique_ptr<hlo::Module> module;
};

Result<ReadProgram> read_program(std::string_view code, std::string_view options, size_t devices) {
  ReadProgram read;
  read.state->code = code;
  read.state->options = options;
  read.state->takes_reshaped = hlo::is_hlo_proto(code);
  TENON_ASSIGN(read.options, parse_compile_options(options));
  TENON_ASSIGN(read.device, device_of(read.options, devices));
  TENON_ASSIGN(read.module, hlo::import_module(code, "program"));
  hlo::Module& module = *read.module;
  // Frameworks that use PJRT are written for XLA's scatter.
  TENON_TRY(hlo::drop_whole_windows(module));
  TENON_TRY(replace_host_transfers(module));
  replace_tokens(module);
  if (module.entry() == nullptr) return invalid_argument("the program has no @main");
  read.state->name = module.name().empty() ? module.entry()->name() : module.name();
  TENON_TRY(add_signatures(*module.entry(), *read.state));
  return read;
}

}  // namespace

PJRT_LoadedExecutable* finish(std::shared_ptr<ExecutableState> state, CompiledModule compiled) {
  set_costs(*state, compiled.steps);
  state->target = state->device->description.kind;
  state->code_bytes = compiled.code_bytes;
  state->temporary_bytes = compiled.temporary_bytes;
  state->alias_bytes = compiled.executable->aliased_bytes();
  state->executable = compiled.executable;
  state->device_assignment = device_assignment_of(state->device->description.id);
  set_fingerprint(*state, state->client->topology);
  auto loaded = std::make_unique<PJRT_LoadedExecutable>();
  loaded->state = std::move(state);
  loaded->executable = std::move(compiled.executable);
  return loaded.release();
}

Result<PJRT_LoadedExecutable*> compile(const std::shared_ptr<ClientState>& client,
                                       std::string_view code, std::string_view options) {
  const ProfiledWork work;
  TENON_ASSIGN(ReadProgram read, read_program(code, options, client->devices.size()));
  read.state->client = client;
  read.state->device = client->devices[read.device];
  TENON_ASSIGN(CompiledModule compiled,
               client->engine->compile(std::move(read.module), read.device, read.options.compile));
  work.until_now(*read.state->device, ProfileRow::kCompilations, read.state->name);
  return finish(std::move(read.state), std::move(compiled));
}

Result<PJRT_Executable*> compile(const PJRT_TopologyDescription& topology, std::string_view code,
                                 std::string_view options) {
  TENON_ASSIGN(ReadProgram read, read_program(code, options, topology.descriptions.size()));
  TENON_ASSIGN(UnloadedModule compiled, compile_for(topology.named, read.device,
                                                    std::move(read.module), read.options.compile));
  ExecutableState& state = *read.state;
  set_costs(state, compiled.steps);
  state.target = topology.descriptions[read.device]->kind;
  state.code_bytes = compiled.code_bytes;
  state.temporary_bytes = compiled.temporary_bytes;
  state.unloaded = std::move(compiled.saved);
  set_fingerprint(state, topology);
  return new PJRT_Executable{std::move(read.state)};
}

namespace {

// Shardings split nothing (device_of), and their meshes are gone since the import: a reader of the
// text would miss those.
void drop_shardings(hlo::Dict& attributes) {
  std::erase_if(attributes,
                [](const auto& attribute) { return attribute.first.starts_with("sdy."); });
}

void drop_shardings(hlo::Computation& computation) {
  for (hlo::Dict& attributes : computation.parameter_attributes()) drop_shardings(attributes);
  for (hlo::Dict& attributes : computation.result_attributes()) drop_shardings(attributes);
  for (hlo::Instruction& op : computation) {
    drop_shardings(op.mutable_discardable());
    for (size_t r = 0; r < op.region_count(); ++r) drop_shardings(op.region(r));
  }
}

// jaxlib converts the text to HLO, for which it expands some ops of CHLO and refuses others.
Status name_for_xla(hlo::Computation& computation) {
  for (auto each = computation.begin(); each != computation.end();) {
    hlo::Instruction& op = *each++;
    for (size_t r = 0; r < op.region_count(); ++r) TENON_TRY(name_for_xla(op.region(r)));
    const auto name = hlo::call_target_for_xla(op.name());
    if (!name) continue;
    hlo::Builder builder(computation, &op);
    builder.set_location(op.location());
    hlo::Instruction* const call =
        builder.create(hlo::OpCode::kCustomCall, op.operands(),
                       {{hlo::AttrKey::call_target_name, std::string(*name)}}, op.result_types());
    if (call == nullptr) return builder.status();
    call->mutable_discardable().emplace_back("mhlo.attributes", hlo::Dict());
    call->mutable_discardable().emplace_back("mhlo.version",
                                             hlo::IntegerAttr{1, ElementType::kS64});
    op.replace_all_uses({{call, 0}});
    computation.erase(&op);
  }
  return {};
}

}  // namespace

Result<std::string> optimized_text(const ExecutableState& state) {
  static constexpr std::string_view kPasses[] = {"inline-calls", "simplify", "dce"};
  TENON_ASSIGN(const PjrtCompileOptions options, parse_compile_options(state.options));
  TENON_ASSIGN(const std::shared_ptr<hlo::Module> module,
               hlo::import_module(state.code, "program"));
  hlo::PassOptions passes;
  passes.rewrites = options.compile.rewrites;
  TENON_TRY(hlo::run_passes(*module, kPasses, passes));
  for (const auto& function : module->functions()) {
    drop_shardings(*function);
    TENON_TRY(name_for_xla(*function));
  }
  return hlo::print_module(*module, {.form = hlo::TextForm::kStableHlo, .locations = true});
}

namespace {

Status check_format(const PJRT_Program& program) {
  const std::string_view format = view_of(program.format, program.format_size);
  if (format == "mlir") return {};
  if (format == "hlo") {
    if (hlo::is_hlo_proto(view_of(program.code, program.code_size))) return {};
    return invalid_argument("the program is no HloModuleProto");
  }
  return unimplemented(
      "a program of format '{}'; 'mlir', as an artifact or as text, and 'hlo' are read", format);
}

Status client_compile(PJRT_Client_Compile_Args& args) {
  const PJRT_Program& program = *args.program;
  TENON_TRY(check_format(program));
  TENON_ASSIGN(args.executable,
               compile(args.client->state, view_of(program.code, program.code_size),
                       view_of(args.compile_options, args.compile_options_size)));
  return {};
}

// A client, if one is given, is not needed.
Status compile_ahead(PJRT_Compile_Args& args) {
  const PJRT_Program& program = *args.program;
  TENON_TRY(check_format(program));
  TENON_ASSIGN(args.executable, compile(*args.topology, view_of(program.code, program.code_size),
                                        view_of(args.compile_options, args.compile_options_size)));
  return {};
}

// Options that are given take the place of those of the compilation.
Status client_load(PJRT_Client_Load_Args& args) {
  TENON_ASSIGN(args.loaded_executable,
               load(args.client->state, save(*args.executable->state),
                    view_of(args.compile_options, args.compile_options_size)));
  return {};
}

}  // namespace

void add_compile(PJRT_Api& api) {
  api.PJRT_Client_Compile = entry<client_compile>;
  api.PJRT_Compile = entry<compile_ahead>;
  api.PJRT_Client_Load = entry<client_load>;
}

}  // namespace tenon::pjrt
