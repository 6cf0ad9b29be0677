#include "backends/gpu/aot/aot.h"

#include <charconv>
#include <cstring>
#include <functional>
#include <map>

#include "backends/gpu/codegen/nvptx.h"
#include "backends/gpu/codegen/segment.h"
#include "backends/gpu/simulator/pass.h"
#include "core/base/digest.h"
#include "core/base/process/environment.h"
#include "core/program/segment.h"
#include "core/program/serial.h"

namespace tenon::gpu {
namespace {

using program::Program;

constexpr std::string_view kSimulator = "simulator";

Result<PtxChip> chip_of(const AheadTarget& target) {
  std::string names;
  for (PtxChip each : kPtxChips) {
    const std::string name = fmt::format("sm_{}", each.compute_capability);
    if (target.multiprocessors > 0) each.multiprocessors = target.multiprocessors;
    if (target.cpu == name) return each;
    names += name + ", ";
  }
  // The size of the GPU that `gpu-sim` simulates.
  if (target.cpu == kSimulator) return kPtxChips[std::size(kPtxChips) - 1];
  return invalid_argument("--cpu {}: a GPU is one of {}or newer by the code of the last",
                          target.cpu.empty() ? "NAME" : target.cpu, names);
}

// Makes no image: what it is asked is which kernels are declined.
class NoAssembler final : public Assembler {
 public:
  Result<std::vector<std::string>> assemble(llvm::Module&) override {
    return std::vector<std::string>();
  }
};

// Compiles nothing: its Programs are compiled as wholes.
class AheadBackend final : public backend::Backend {
 public:
  explicit AheadBackend(const PtxChip& chip) : chip_(chip) {}

  std::string_view name() const override { return "gpu-ahead"; }
  std::string_view version() const override { return "1"; }
  Result<std::vector<backend::DeviceInfo>> devices() override {
    backend::TargetInfo target = target_of_gpu(chip_.compute_capability);
    target.compute_units = chip_.multiprocessors;
    return std::vector<backend::DeviceInfo>{{"gpu-ahead:0", std::move(target)}};
  }
  Result<std::unique_ptr<backend::Device>> open(size_t) override {
    return unimplemented("code that is compiled ahead of time has no device");
  }
  Result<backend::Compiled> compile(const backend::TargetInfo& target,
                                    backend::Kernels kernels) override {
    NoAssembler assembler;
    TENON_ASSIGN(CompiledKernels compiled, gpu::compile(target, kernels, assembler));
    return backend::Compiled{compiled.declined.empty() ? "ahead" : "",
                             std::move(compiled.declined)};
  }

 private:
  const PtxChip chip_;
};

// The form that the driver of tests takes: 8 letters, the size of the image, the image.
class FramedSimAssembler final : public Assembler {
 public:
  Result<std::vector<std::string>> assemble(llvm::Module& module) override {
    TENON_ASSIGN(const std::string image, assemble_for_host(module, false));
    const uint64_t bytes = image.size();
    std::string framed = "TENONSIM" + std::string(sizeof bytes, '\0') + image;
    std::memcpy(framed.data() + sizeof bytes, &bytes, sizeof bytes);
    return std::vector{std::move(framed)};
  }
};

Status check_steps_ahead(const Program& program) {
  Status outcome;
  program::for_each_step(
      program, {}, [](const program::Step&) { return true; },
      [&](const program::Step& step) {
        const auto* call = std::get_if<program::CustomCall>(&step.action);
        if (call == nullptr || !outcome.ok()) return;
        outcome = Status(unimplemented(
            "{}: {}", step.label,
            call->target == "tenon.host"
                ? "the op runs on a host, which code ahead of time does not have"
                : fmt::format("the custom call @{} needs a host, which code for a GPU does not "
                              "have",
                              call->target)));
      });
  return outcome;
}

void for_each_place(GpuSegment& segment, const std::function<void(SegmentPlace&)>& visit) {
  for (auto& sequence : segment.sequences) {
    for (SegmentStep& step : sequence) {
      if (auto* launch = std::get_if<SegmentLaunch>(&step)) {
        for (SegmentPlace& each : launch->buffers) visit(each);
      } else if (auto* loop = std::get_if<SegmentLoop>(&step)) {
        visit(loop->predicate);
      } else if (auto* choice = std::get_if<SegmentChoice>(&step)) {
        visit(choice->index);
      }
    }
  }
}

// The constants of all functions: equal ones are one.
class AheadConstants {
 public:
  AheadConstants(AheadModel& model, bool in_file) : model_(model), in_file_(in_file) {}

  /// The number of the constant in the model's list.
  size_t find(const Literal& literal) {
    const auto [same, is_new] = by_literal_.try_emplace(&literal, 0);
    if (is_new) same->second = place(literal);
    return same->second;
  }

  static void pad(std::string& part) { part.resize((part.size() + kUnit - 1) / kUnit * kUnit); }

 private:
  // Smaller ones stay with the code: a page of a file is no gain.
  static constexpr size_t kLeastInFile = 256;
  static constexpr size_t kUnit = 256;

  size_t place(const Literal& literal) {
    const std::string_view bytes(reinterpret_cast<const char*>(literal.data().data()),
                                 literal.data().size());
    const auto [at, added] = known_.try_emplace(serial::digest_of(bytes), model_.list.size());
    if (!added) return at->second;
    AheadConstant row;
    row.shape = literal.shape();
    row.bytes = std::ssize(bytes);
    row.in_file = in_file_ && bytes.size() >= kLeastInFile;
    std::string& part = row.in_file ? model_.weights : model_.constants;
    pad(part);
    row.offset = std::ssize(part);
    part += bytes;
    model_.list.push_back(std::move(row));
    return at->second;
  }

  AheadModel& model_;
  const bool in_file_;
  std::map<const Literal*, size_t> by_literal_;
  std::map<std::string, size_t> known_;
};

// Puts the functions' constants into the model, and states each place as AheadEntry does.
void place_memories(std::span<const Program* const> programs, bool in_file, AheadModel& model) {
  AheadConstants constants(model, in_file);
  const auto literal_of = [](const Program& program, const AheadEntry& entry,
                             const SegmentPlace& place) -> const Literal* {
    const bool is_constant =
        place.memory >= entry.arrays && place.memory < entry.arrays + program.constants.size();
    return is_constant ? &program.constants[place.memory - entry.arrays] : nullptr;
  };
  for (size_t i = 0; i < programs.size(); ++i) {
    AheadEntry& entry = model.entries[i];
    for_each_place(entry.segment, [&](SegmentPlace& place) {
      const Literal* const literal = literal_of(*programs[i], entry, place);
      if (literal != nullptr) constants.find(*literal);
    });
  }
  if (!model.weights.empty()) AheadConstants::pad(model.constants);
  const int64_t embedded = std::ssize(model.constants);
  for (size_t i = 0; i < programs.size(); ++i) {
    AheadEntry& entry = model.entries[i];
    for_each_place(entry.segment, [&](SegmentPlace& place) {
      if (place.memory < entry.arrays) return;
      if (const Literal* const literal = literal_of(*programs[i], entry, place)) {
        const AheadConstant& row = model.list[constants.find(*literal)];
        place = {entry.constants(), place.offset + row.offset + (row.in_file ? embedded : 0)};
      } else if (place.memory == program::kNone) {
        place = {entry.arena() + 1, 0};
      } else {
        place.memory = entry.arena();
      }
    });
  }
}

// An error if TENON_PTXAS names no program, or if it did not start: `outcome` is that of its run.
Status check_ptxas(const Status& outcome) {
  const std::string named = environment_or("TENON_PTXAS", "");
  if (named.empty()) return {};
  if (find_ptxas().empty() || outcome.code() == ErrorCode::kUnavailable) {
    return failed_precondition("TENON_PTXAS: {} cannot be run", named);
  }
  return {};
}

std::vector<AheadImage> images_of(std::vector<std::string> images, const std::string& cpu) {
  std::vector<AheadImage> made;
  for (std::string& each : images) {
    std::string kind = each.starts_with(
                           "\x7f"
                           "ELF")
                           ? "cubin"
                           : "ptx";
    if (cpu == kSimulator) kind = kSimulator;
    made.push_back({std::move(kind), std::move(each)});
  }
  return made;
}

}  // namespace

std::string newest_known(std::string_view gpu) {
  int32_t given = 0;
  if (gpu.starts_with("sm_")) std::from_chars(gpu.data() + 3, gpu.data() + gpu.size(), given);
  std::string name(gpu);
  for (const PtxChip& each : kPtxChips) {
    if (each.compute_capability <= given) name = fmt::format("sm_{}", each.compute_capability);
  }
  return name;
}

Result<std::shared_ptr<backend::Backend>> make_ahead_backend(const AheadTarget& target) {
  TENON_ASSIGN(const PtxChip chip, chip_of(target));
  return std::make_shared<AheadBackend>(chip);
}

Result<AheadModel> compile_ahead(std::span<const Program* const> programs,
                                 const AheadOptions& options) {
  TENON_ASSIGN(const PtxChip chip, chip_of(options.target));
  TENON_ASSIGN(const auto devices, AheadBackend(chip).devices());
  const bool is_simulator = options.target.cpu == kSimulator;
  if (!is_simulator) TENON_TRY(check_ptxas({}));
  const std::string ptxas = is_simulator ? "" : find_ptxas();
  AheadModel model;
  std::string made_from =
      fmt::format("{} {} {} {} ptxas {} {}", kAheadTriple, options.target.cpu, chip.multiprocessors,
                  devices[0].target.compiler_id, version_of(ptxas), options.version);
  for (const Program* const each : programs) {
    TENON_TRY(check_steps_ahead(*each));
    made_from += program::save(*each);
    AheadEntry& entry = model.entries.emplace_back();
    entry.arrays = static_cast<uint32_t>(each->parameters.size() + each->results.size());
    entry.arena_bytes = each->temporary_bytes;
    entry.aliases = program::parameters_of_results(*each);
  }
  model.hash = serial::digest_of(made_from);
  FramedSimAssembler simulated;
  PtxAssembler assembled(chip.compute_capability, ptxas);
  Assembler& assembler = is_simulator ? static_cast<Assembler&>(simulated) : assembled;
  std::vector<GpuSegment> segments;
  TENON_ASSIGN(CompiledKernels compiled,
               compile_segments(devices[0].target, programs, assembler, segments));
  if (!compiled.declined.empty()) return unimplemented("{}", compiled.declined[0].text);
  if (!is_simulator) TENON_TRY(check_ptxas(assembled.no_cubin()));
  for (size_t i = 0; i < segments.size(); ++i) {
    AheadEntry& entry = model.entries[i];
    entry.segment = std::move(segments[i]);
    entry.waits = entry.segment.sequences.size() > 1;
  }
  model.kernels = std::move(compiled.code.kernels);
  if (!model.kernels.empty()) {
    model.images = images_of(std::move(compiled.code.images), options.target.cpu);
    model.no_cubin = assembled.no_cubin().message();
  }
  place_memories(programs, options.weights_in_file, model);
  constexpr size_t kMost = size_t{1} << 30;
  if (model.constants.size() > kMost) {
    return resource_exhausted(
        "{} bytes of constants are more than an object can hold: write them to a file with "
        "--weights file",
        model.constants.size());
  }
  return model;
}

}  // namespace tenon::gpu
