// `tenon aot`: compiles a model ahead of time.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/gpu/aot/aot.h"
#include "core/base/file.h"
#include "core/program/serial.h"
#include "hlo/driver/compile.h"
#include "hlo/passes/normalize/refine_shapes.h"
#include "tools/aot/report.h"
#include "tools/aot/tenon_aot.h"
#include "tools/aot/weights.h"
#include "tools/aot/write_files.h"
#include "tools/arguments.h"
#include "tools/cli.h"
#include "tools/compile_options.h"
#include "tools/installation.h"

namespace tenon::tools {
namespace {

namespace fs = std::filesystem;

struct AotCommandOptions {
  std::string file;
  std::string folder;
  std::string name;
  std::string library = "static";
  std::string weights = "embedded";
  std::string weights_type = "f32";
  std::string language = "c";
  std::string optimize = "speed";
  std::string arena = "caller";
  int64_t threads = 0;
  cpu::AotTarget target;
  std::string target_info;
  int64_t multiprocessors = 0;  // Of the GPU in the file above.
  std::vector<std::string> calls;
  std::vector<std::string> entries;
  std::vector<std::string> shapes;
  std::vector<std::string> args;
  hlo::rewrite::Options rewrites;
  std::vector<std::string> tuning;
  bool json = false;
  bool bench = false;

  bool is_gpu() const { return target.triple.starts_with("nvptx"); }
};

// The names of tenon_aot.h and of a source's own parts.
constexpr std::string_view kReservedPrefix = "tenon_aot";

// A function of the model, compiled.
struct CompiledFunction {
  std::string name;  // As a C identifier.
  program::Program program;
  std::vector<std::string> parameters;  // Names, as the program states them; may be empty.
};

Status usage(std::string text) {
  return Status(ErrorCode::kInvalidArgument, std::move(text)).in_stage(kUsageStage);
}

// The functions that others may call, main first.
Result<std::vector<std::string>> entries_of(const hlo::Module& module,
                                            const AotCommandOptions& options) {
  std::vector<std::string> names;
  for (const std::string& name : options.entries) {
    const hlo::Computation* const function = module.find_function(name);
    if (function == nullptr || function->is_declaration()) {
      return not_found("there is no function @{}", name);
    }
    names.push_back(name);
  }
  if (!names.empty()) return names;
  for (const auto& each : module.functions()) {
    const bool is_public = each->visibility().empty() || each->visibility() == "public";
    if (is_public && !each->is_declaration()) names.push_back(each->name());
  }
  if (names.empty()) return invalid_argument("there is no public function; name one with --entry");
  std::ranges::stable_partition(names, [](const std::string& name) { return name == "main"; });
  return names;
}

class AotCompilation {
 public:
  AotCompilation(const AotCommandOptions& options, std::shared_ptr<backend::Backend> backend,
                 backend::TargetInfo target)
      : options_(options), backend_(std::move(backend)), target_(std::move(target)) {}

  Result<std::vector<CompiledFunction>> run(std::string_view bytes, const std::string& path) {
    if (bytes.starts_with(program::kProgramFormat.letters)) return saved(bytes);
    TENON_ASSIGN(const std::unique_ptr<hlo::Module> module,
                 import_program(bytes, path, {options_.shapes, options_.args}));
    TENON_ASSIGN(const std::vector<std::string> names, entries_of(*module, options_));
    std::vector<CompiledFunction> functions;
    // Functions share constants: tiles of each might want them in another order.
    is_only_ = names.size() == 1;
    for (const std::string& name : names) {
      TENON_ASSIGN(CompiledFunction function, one(*module, name));
      functions.push_back(std::move(function));
    }
    return functions;
  }

 private:
  Result<hlo::CompileOptions> compile_options() const {
    hlo::CompileOptions compile;
    compile.strict = true;
    compile.rewrites = options_.rewrites;
    TENON_TRY(set_tuning(options_.tuning, compile.lower.tuning));
    return compile;
  }

  Result<CompiledFunction> one(const hlo::Module& module, const std::string& name) const {
    CompiledFunction function;
    function.name = c_identifier(name);
    function.parameters = parameter_names(*module.find_function(name));
    TENON_ASSIGN(hlo::CompileOptions compile, compile_options());
    compile.lower.entry = name;
    compile.lower.limits.lays_out_constants = is_only_;
    const hlo::Module* source = &module;
    std::unique_ptr<hlo::Module> refined;
    if (!options_.shapes.empty() || hlo::is_dynamic(module)) {
      hlo::ArgumentKnowledge known;
      known.entry = name;
      TENON_ASSIGN(known.shapes, parse_shapes(options_.shapes));
      TENON_ASSIGN(refined, hlo::refine(module, known));
      source = refined.get();
    }
    if (options_.weights_type != "f32") {
      if (refined == nullptr) refined = module.clone();
      TENON_TRY(narrow_weights(*refined, name, *element_type_from_name(options_.weights_type)));
      source = refined.get();
    }
    TENON_ASSIGN(hlo::Compilation compilation, hlo::compile(*source, *backend_, target_, compile));
    for (const std::string& each : compilation.warnings) fmt::print(stderr, "warning: {}\n", each);
    function.program = std::move(compilation.compiled.program);
    return function;
  }

  Result<std::vector<CompiledFunction>> saved(std::string_view bytes) const {
    if (!options_.entries.empty() || !options_.shapes.empty() || options_.weights_type != "f32") {
      return invalid_argument("a saved program has one entry, static shapes and its own types");
    }
    TENON_ASSIGN(const program::Program program, program::load_program(bytes));
    TENON_ASSIGN(const hlo::CompileOptions compile, compile_options());
    TENON_ASSIGN(hlo::Compilation compilation, hlo::compile(program, *backend_, target_, compile));
    CompiledFunction function;
    function.name = program.name.empty() ? "main" : c_identifier(program.name);
    function.program = std::move(compilation.compiled.program);
    std::vector<CompiledFunction> functions;
    functions.push_back(std::move(function));
    return functions;
  }

  const AotCommandOptions& options_;
  const std::shared_ptr<backend::Backend> backend_;
  const backend::TargetInfo target_;
  bool is_only_ = true;  // The model has one function.
};

// Names of arguments that C takes and that differ from all others; else x0, x1 …
std::vector<std::string> argument_names(const CompiledFunction& function, bool is_gpu) {
  static const std::set<std::string, std::less<>> kTaken = {
      "arena",   "context", "auto",     "break",     "case",     "char",   "const",    "continue",
      "do",      "double",  "else",     "enum",      "extern",   "float",  "for",      "goto",
      "if",      "inline",  "int",      "long",      "register", "return", "short",    "signed",
      "sizeof",  "static",  "struct",   "switch",    "typedef",  "union",  "void",     "while",
      "bool",    "class",   "delete",   "new",       "this",     "true",   "false",    "template",
      "default", "errors",  "volatile", "operator",  "private",  "public", "unsigned", "restrict",
      "try",     "catch",   "using",    "namespace", "i",        "main",   "error"};
  const auto is_of_gpu = [&](std::string_view name) {
    return is_gpu && (name == "gpu" || name == "stream" || name == "device");
  };
  const size_t count = function.program.parameters.size();
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (size_t i = 0; i < count && i < function.parameters.size(); ++i) {
    const std::string& given = function.parameters[i];
    std::string name = c_identifier(given);
    const bool is_good = !given.empty() && name[0] != '_' && !kTaken.contains(name) &&
                         !is_of_gpu(name) && name.size() <= 40 && seen.insert(upper(name)).second &&
                         !(name[0] == 'y' && name.find_first_not_of("0123456789", 1) == name.npos);
    if (!is_good) break;
    names.push_back(std::move(name));
  }
  if (names.size() == count) return names;
  names.clear();
  for (size_t i = 0; i < count; ++i) names.push_back(fmt::format("x{}", i));
  return names;
}

AotSignature signature_of(const CompiledFunction& function, bool is_gpu) {
  AotSignature signature;
  signature.name = function.name;
  const program::Program& program = function.program;
  const auto shape = [&](program::BufferId id) {
    return Shape(program.buffer(id).type, program.buffer(id).dims);
  };
  const std::vector<std::string> names = argument_names(function, is_gpu);
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    signature.arguments.push_back({names[i], shape(program.parameters[i]), -1});
  }
  for (size_t i = 0; i < program.results.size(); ++i) {
    signature.results.push_back({fmt::format("y{}", i), shape(program.results[i]), -1});
  }
  return signature;
}

// Errors: two names of C in the model's header that are one, or one of tenon_aot.h.
Status check_symbols(const AotProject& project) {
  std::set<std::string, std::less<>> taken;
  const auto add = [&](const std::string& prefix, std::initializer_list<std::string_view> parts) {
    for (const std::string_view each : parts) taken.insert(fmt::format("{}_{}", prefix, each));
  };
  add(project.name, {"model"});
  if (project.is_gpu) add(project.name, {"load", "unload", "gpu"});
  if (!project.calls.empty()) add(project.name, {"calls"});
  add(upper(project.name),
      {"H", "ALIGNMENT", "HASH", "WEIGHTS_BYTES", "WEIGHTS_HASH", "THREADS", "FILES"});
  for (const AotSignature& each : project.functions) {
    const std::string symbol = fmt::format("{}_{}", project.name, each.name);
    if (symbol.starts_with(kReservedPrefix)) {
      return usage(fmt::format("function @{}: {} is a name of tenon_aot.h", each.name, symbol));
    }
    for (const std::string& made : {symbol, symbol + "_run", upper(symbol) + "_ARENA_BYTES"}) {
      if (taken.insert(made).second) continue;
      return usage(fmt::format("function @{}: the model has another {}", each.name, made));
    }
  }
  return {};
}

void complete(AotSignature& signature, const cpu::AotEntry& entry) {
  signature.symbol = entry.symbol;
  signature.arena_bytes = entry.arena_bytes;
  for (size_t r = 0; r < entry.aliases.size(); ++r) {
    if (entry.aliases[r] == program::kNone) continue;
    signature.results[r].shared = entry.aliases[r];
    signature.arguments[entry.aliases[r]].shared = static_cast<int64_t>(r);
  }
}

Result<cpu::AotModel> compile_model(const std::vector<CompiledFunction>& functions,
                                    const AotCommandOptions& options, AotProject& project) {
  cpu::AotOptions ahead;
  ahead.target = options.target;
  ahead.name = project.name;
  ahead.version = TENON_VERSION;
  ahead.is_small = options.optimize == "size";
  ahead.weights_in_file = options.weights == "file";
  ahead.stack_arena = project.stack_arena;
  ahead.threads = options.threads;
  ahead.calls = options.calls;
  std::vector<cpu::AotFunction> sources;
  for (size_t i = 0; i < functions.size(); ++i) {
    const AotSignature& signature = project.functions[i];
    cpu::AotFunction source;
    source.name = functions[i].name;
    source.program = &functions[i].program;
    for (const AotArray& each : signature.arguments) source.parameters.push_back(each.name);
    for (const AotArray& each : signature.results) source.results.push_back(each.name);
    sources.push_back(std::move(source));
  }
  TENON_ASSIGN(cpu::AotModel model, cpu::compile_ahead(sources, ahead));
  for (size_t i = 0; i < functions.size(); ++i) complete(project.functions[i], model.entries[i]);
  project.target = model.target.triple + " " + model.target.cpu;
  project.hash = model.hash;
  project.weights_bytes = std::ssize(model.weights);
  project.weights_hash = model.weights_hash;
  return model;
}

// An option that is for CPUs alone, or for GPUs alone.
Status check_options(const AotCommandOptions& options) {
  if (!options.is_gpu()) {
    if (!options.target_info.empty()) return usage("--target-info is for GPUs");
    if (options.library != "source") return {};
    return usage(fmt::format("--library source is for GPUs: --target {}", gpu::kAheadTriple));
  }
  const std::pair<std::string_view, bool> given[] = {
      {"--threads", options.threads > 0}, {"--arena stack", options.arena == "stack"},
      {"--call", !options.calls.empty()}, {"--features", !options.target.features.empty()},
      {"--bench", options.bench},         {"--optimize size", options.optimize == "size"}};
  for (const auto& [name, is_given] : given) {
    if (is_given) return usage(fmt::format("{} is for CPUs, not for GPUs", name));
  }
  return {};
}

Result<AotProject> project_of(const AotCommandOptions& options) {
  TENON_TRY(check_options(options));
  AotProject project;
  const std::string stem = fs::path(options.file).stem().string();
  project.name =
      options.name.empty() ? c_identifier(options.file == "-" ? "model" : stem) : options.name;
  if (c_identifier(project.name) != project.name || project.name.starts_with('_')) {
    return Error(usage(fmt::format("--name {}: a name of C is expected", project.name)));
  }
  if (project.name.starts_with(kReservedPrefix)) {
    return Error(usage(fmt::format("--name {}: it is a name of tenon_aot.h", project.name)));
  }
  project.library = options.library == "object"   ? AotLibrary::kObject
                    : options.library == "static" ? AotLibrary::kStatic
                    : options.library == "source" ? AotLibrary::kSource
                                                  : AotLibrary::kShared;
  project.version = TENON_VERSION;
  project.is_gpu = options.is_gpu();
  project.is_cpp = options.language == "c++";
  project.stack_arena = options.arena == "stack";
  project.threads = options.threads;
  for (const std::string& target : options.calls) {
    project.calls.push_back({target, c_identifier(target)});
    const auto same =
        std::ranges::count(project.calls, project.calls.back().member, &AotCall::member);
    if (same > 1) {
      return Error(usage(fmt::format("--call {}: another call has the same name in C", target)));
    }
  }
  if (options.bench && !options.calls.empty()) {
    return Error(usage("--bench cannot make custom calls"));
  }
  if (options.bench && !options.target.triple.empty()) {
    return Error(usage("--bench runs code of this machine: it excludes --target"));
  }
  return project;
}

#ifdef TENON_AOT_CROSS
Result<std::shared_ptr<backend::Backend>> make_backend(const AotCommandOptions& options) {
  return cpu::make_aot_backend(options.target);
}
Status read_gpu(AotCommandOptions&) { return {}; }
Status compile_for_gpu(const std::vector<CompiledFunction>&, const AotCommandOptions&, AotReport&) {
  return unimplemented("GPUs are compiled for by tenon");
}
#else
// Reads the description of the GPU, if a file has one: once, as it may be a pipe.
Status read_gpu(AotCommandOptions& options) {
  if (options.target_info.empty()) return {};
  TENON_ASSIGN(const std::string text, read_file(options.target_info));
  const auto described = backend::parse_target(text);
  if (!described) return Status(described.error()).with_context(options.target_info);
  if (options.target.cpu.empty()) options.target.cpu = gpu::newest_known(described->name);
  options.multiprocessors = described->compute_units;
  return {};
}

Result<std::shared_ptr<backend::Backend>> make_backend(const AotCommandOptions& options) {
  if (!options.is_gpu()) return cpu::make_aot_backend(options.target);
  if (options.target.triple == gpu::kAheadTriple) {
    return gpu::make_ahead_backend({options.target.cpu, options.multiprocessors});
  }
  return invalid_argument("--target {}: of GPUs only {} is known", options.target.triple,
                          gpu::kAheadTriple);
}

// States what all models have in the report's `model`, and the rest in its `gpu`.
Status compile_for_gpu(const std::vector<CompiledFunction>& functions,
                       const AotCommandOptions& options, AotReport& report) {
  AotProject& project = report.project;
  std::vector<const program::Program*> programs;
  for (const CompiledFunction& each : functions) programs.push_back(&each.program);
  const gpu::AheadTarget target = {options.target.cpu, options.multiprocessors};
  TENON_ASSIGN(report.gpu,
               gpu::compile_ahead(programs, {target, project.version, options.weights == "file"}));
  gpu::AheadModel& made = *report.gpu;
  if (!made.no_cubin.empty()) {
    const std::string reason = made.no_cubin.substr(0, made.no_cubin.find('\n'));
    fmt::print(stderr, "warning: no cubin: {}\n", reason);
  }
  cpu::AotModel& model = report.model;
  for (size_t i = 0; i < functions.size(); ++i) {
    const gpu::AheadEntry& entry = made.entries[i];
    model.entries.push_back({project.name + "_" + functions[i].name, entry.arena_bytes,
                             entry.arena_bytes, entry.aliases});
    complete(project.functions[i], model.entries.back());
    project.functions[i].waits = entry.waits;
  }
  for (const gpu::AheadConstant& each : made.list) {
    model.constants.push_back({fmt::format("{}_constant_{}", project.name, model.constants.size()),
                               each.shape, each.bytes, each.in_file ? each.offset : -1});
  }
  model.weights = made.weights;
  model.hash = project.hash = made.hash;
  project.weights_bytes = std::ssize(model.weights);
  project.weights_hash =
      fmt::format("{:016x}", tenon_aot_hash(model.weights.data(), model.weights.size()));
  project.target = fmt::format("{} {}", gpu::kAheadTriple, target.cpu);
  project.kernels = std::ssize(made.kernels);
  return {};
}
#endif

Result<AotReport> compiled_ahead(AotCommandOptions& options) {
  AotReport report;
  TENON_ASSIGN(report.project, project_of(options));
  TENON_ASSIGN(const InputFile input, read_input(options.file));
  if (Status read = read_gpu(options); !read.ok())
    return Error(std::move(read).in_stage(kUsageStage));
  auto backend = make_backend(options);
  if (!backend) return Error(Status(backend.error()).in_stage(kUsageStage));
  TENON_ASSIGN(const auto devices, (*backend)->devices());
  AotCompilation compilation(options, *backend, devices[0].target);
  TENON_ASSIGN(const std::vector<CompiledFunction> functions,
               compilation.run(input.bytes, input.name));
  for (const CompiledFunction& each : functions) {
    report.project.functions.push_back(signature_of(each, options.is_gpu()));
  }
  TENON_TRY(check_symbols(report.project));
  if (options.is_gpu()) {
    TENON_TRY(compile_for_gpu(functions, options, report));
    return report;
  }
  TENON_ASSIGN(report.model, compile_model(functions, options, report.project));
  if (auto symbols = cpu::symbols_of(report.model.object)) report.symbols = *std::move(symbols);
  return report;
}

#ifdef TENON_AOT_CROSS
void run_cross() {}
#else
// Becomes the program with every target of LLVM, if there is one: beside this one in a build
// folder, else in the installation.
void run_cross() {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  fs::path program = own.parent_path() / "tenon-aot-cross";
  if (const auto installed = installation(); installed && !fs::exists(program, error)) {
    program = installed->chip.parent_path() / "tenon-aot-cross";
  }
  const auto line = read_file("/proc/self/cmdline");
  if (!line || !fs::exists(program, error)) return;
  std::string words = *line;
  std::vector<char*> arguments;
  for (size_t at = 0; at < words.size(); at = words.find('\0', at) + 1) {
    arguments.push_back(words.data() + at);
  }
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
}
#endif

// Whether LLVM has the target here; input from a pipe can be read once only.
bool has_target(const AotCommandOptions& options) {
  if (options.is_gpu()) return true;
  const auto backend = cpu::make_aot_backend(options.target);
  return backend || backend.error().code() != ErrorCode::kUnimplemented;
}

int aot(AotCommandOptions& options) {
  if (!has_target(options)) run_cross();
  auto made = compiled_ahead(options);
  if (!made) return report(made.error());
  if (const Status written = write_files(*made, options.folder); !written.ok()) {
    return report(written);
  }
  if (options.bench) {
    auto times = time_ahead(*made);
    if (!times) return report(times.error());
    made->times = *std::move(times);
  }
  if (options.json) {
    print_json(json_of(*made));
  } else {
    print_report(*made);
  }
  return 0;
}

void add_target_options(CLI::App& command, AotCommandOptions& options) {
  command
      .add_option("--target", options.target.triple,
                  "Triple of the machine, as LLVM names it (default: this machine's); "
                  "nvptx64-nvidia-cuda: NVIDIA's GPUs")
      ->type_name("TRIPLE");
  command
      .add_option("--cpu", options.target.cpu,
                  "Processor, as LLVM names it: native, x86-64-v3, skylake … (default: native "
                  "without --target, else the least); of a GPU sm_90 …")
      ->type_name("NAME");
  command
      .add_option("--features", options.target.features,
                  "Further features of the processor, as LLVM names them: +avx2,-avx512f")
      ->type_name("LIST");
  command
      .add_option(
          "--target-info", options.target_info,
          "The GPU, as 'tenon devices --target' printed it where it is: its multiprocessors, "
          "and without --cpu the newest processor of which it runs the code")
      ->type_name("FILE");
}

void add_form_options(CLI::App& command, AotCommandOptions& options) {
  command
      .add_option("--library", options.library,
                  "Form of the code; source, for GPUs: in C, for a compiler of the host")
      ->check(CLI::IsMember({"static", "shared", "object", "source"}))
      ->capture_default_str();
  command
      .add_option("--weights", options.weights,
                  "Constants: in the library, or in NAME.weights, which the caller reads or maps")
      ->check(CLI::IsMember({"embedded", "file"}))
      ->capture_default_str();
  command
      .add_option("--weights-type", options.weights_type,
                  "Type in which large f32 constants are stored; s8 are integers with a scale for "
                  "each column")
      ->check(CLI::IsMember({"f32", "bf16", "f16", "s8"}))
      ->capture_default_str();
  command.add_option("--lang", options.language, "Headers: of C, or of C++ too")
      ->check(CLI::IsMember({"c", "c++"}))
      ->capture_default_str();
  command.add_option("--optimize", options.optimize, "What the code is to be")
      ->check(CLI::IsMember({"speed", "size"}))
      ->capture_default_str();
  command
      .add_option("--arena", options.arena,
                  "Temporaries: in memory that the caller gives, or on the stack of the function")
      ->check(CLI::IsMember({"caller", "stack"}))
      ->capture_default_str();
  command
      .add_option("--threads", options.threads,
                  "Large kernels call a parallel-for of the caller's with at most N workers "
                  "(default: none; all work is done on the caller's thread)")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}))
      ->type_name("N");
  command
      .add_option("--call", options.calls,
                  "A custom call for which the caller gives a function; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TARGET");
}

}  // namespace

void add_aot_command(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<AotCommandOptions>();
  CLI::App* command = app.add_subcommand(
      "aot", "Compile a program ahead of time: a library and headers for C and C++");
  command
      ->add_option(
          "FILE", options->file,
          "StableHLO text, HLO text, portable artifact, HLO proto, ONNX model or saved program; "
          "'-' is standard input")
      ->required();
  command->add_option("-o,--output", options->folder, "Folder to write to")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--name", options->name,
                   "Name of the model, with which its functions and files begin (default: that of "
                   "the file)")
      ->type_name("NAME");
  command
      ->add_option("--entry", options->entries,
                   "Function to compile, instead of every public one; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("NAME");
  add_target_options(*command, *options);
  add_form_options(*command, *options);
  add_input_options(*command, options->shapes, options->args);
  add_rule_options(*command, options->rewrites);
  add_tuning_options(*command, options->tuning);
  command->add_flag("--bench", options->bench,
                    "Run each function in this process on random arguments, and print its times");
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->footer(
      "The report is in bytes. Whatever needs a host is an error that names the op.\n\nExample:\n"
      "  tenon aot samples/digits_inference/program.mlir -o build/digits --name digits\n"
      "  cc build/digits/digits_example.c build/digits/libdigits.a -lm");
  command->callback([options, exit_code] {
    if (options->target.triple.empty() && options->target.cpu.empty())
      options->target.cpu = "native";
    *exit_code = aot(*options);
  });
}

}  // namespace tenon::tools
