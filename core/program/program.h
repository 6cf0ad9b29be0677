// core/program/: a compiled module by value: kernels, library calls, constants, buffers, steps.
//
// Program: a compiled module, flat and by value. It has kernels, library calls, constants, buffers
// with their locations in memory, and steps that list the earlier steps on which they depend.
//
// A backend or runtime needs nothing else to run it. hlo/lower makes Programs, hlo/buffers assigns
// memory to their buffers, core/program/interpreter.h runs them by interpreting their kernels.
//
// Thread-safety: a value; concurrent reads are safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/ir/kernel.h"
#include "core/program/library_call.h"
#include "core/types/literal.h"

namespace tenon::program {

using BufferId = uint32_t;
using SequenceId = uint32_t;
inline constexpr uint32_t kNone = ~uint32_t{0};

/// The kind of memory in which a buffer lies.
enum class BufferKind : uint8_t {
  kParameter,  ///< Argument `index`.
  kResult,     ///< Result `index`.
  kConstant,   ///< Program::constants[index].
  kTemporary,  ///< The execution's block of temporaries, at `offset`.
};

/// A dense row-major array in memory. An element takes the storage bytes of its type (sub-byte
/// types one byte each, complex types two numbers).
struct Buffer {
  ElementType type{};
  Dims dims;
  BufferKind kind = BufferKind::kTemporary;
  uint32_t index = 0;
  int64_t offset = 0;        ///< Offset of a temporary in bytes; a multiple of kAlignment.
  BufferId view_of = kNone;  ///< The buffer whose memory this one views with another type or shape.

  int64_t bytes() const { return Shape(type, dims).byte_size(); }
  bool operator==(const Buffer&) const = default;
};
inline constexpr int64_t kAlignment = 64;

// --- Steps
//
// A step passes its members to visitors, each with a role: visit(role, member), in the order of the
// serial form. The code that treats all steps alike uses only these visits: serial form, liveness,
// dependencies, coalescing, segments, validation, text. See docs/adding-a-step.md.

namespace role {
struct Reads {};     ///< One or several buffers that the step itself reads.
struct Writes {};    ///< One or several buffers that it writes.
struct Launched {};  ///< Buffers of a kernel, which declares how it accesses each.
struct Runs {};      ///< One or several sequences inside the step.
struct Other {};     ///< Any other member.
}  // namespace role

/// Runs a kernel, with one buffer for each buffer parameter of the kernel, in order.
struct Launch {
  static constexpr std::string_view kName = "launch";
  static constexpr bool kOnHost = false;  ///< Whether the host runs the step.
  uint32_t kernel = 0;
  std::vector<BufferId> buffers;
  std::vector<uint64_t> scalars;

  template <class Self, class Visit>
  static void members(Self& self, const Visit& visit) {
    visit(role::Other{}, self.kernel);
    visit(role::Launched{}, self.buffers);
    visit(role::Other{}, self.scalars);
  }
  bool operator==(const Launch&) const = default;
};

/// Copies bytes between buffers of one size that do not overlap.
struct Copy {
  static constexpr std::string_view kName = "copy";
  static constexpr bool kOnHost = false;
  BufferId destination = 0;
  BufferId source = 0;

  template <class Self, class Visit>
  static void members(Self& self, const Visit& visit) {
    visit(role::Writes{}, self.destination);
    visit(role::Reads{}, self.source);
  }
  bool operator==(const Copy&) const = default;
};

/// Runs `condition`; while it sets `predicate` to true, runs `body` and `condition` again.
struct While {
  static constexpr std::string_view kName = "while";
  static constexpr bool kOnHost = false;
  SequenceId condition = 0;
  SequenceId body = 0;
  BufferId predicate = 0;  ///< pred[]

  template <class Self, class Visit>
  static void members(Self& self, const Visit& visit) {
    visit(role::Runs{}, self.condition);
    visit(role::Runs{}, self.body);
    visit(role::Reads{}, self.predicate);
  }
  bool operator==(const While&) const = default;
};

/// Runs branches[i], where i is the value of `index`. pred[]: true selects branch 0. s32[]: a value
/// out of range selects the last branch.
struct Conditional {
  static constexpr std::string_view kName = "conditional";
  static constexpr bool kOnHost = false;
  BufferId index = 0;
  std::vector<SequenceId> branches;

  template <class Self, class Visit>
  static void members(Self& self, const Visit& visit) {
    visit(role::Reads{}, self.index);
    visit(role::Runs{}, self.branches);
  }
  bool operator==(const Conditional&) const = default;
};

/// A value of a custom call's configuration; the Literals are those of foreign_call.h.
using ConfigValue = std::variant<bool, int64_t, double, std::string, Literal>;
using Config = std::vector<std::pair<std::string, ConfigValue>>;
const ConfigValue* find(const Config& config, std::string_view key);

/// A call of a function that is not in the op set, by target name; run by the host. If a backend
/// takes the call, the step stands in the `lowered` sequence of a LibraryCallStep.
struct CustomCall {
  static constexpr std::string_view kName = "custom call";
  static constexpr bool kOnHost = true;
  std::string target;
  Config config;
  std::vector<BufferId> operands;
  std::vector<BufferId> results;

  template <class Self, class Visit>
  static void members(Self& self, const Visit& visit) {
    visit(role::Other{}, self.target);
    visit(role::Other{}, self.config);
    visit(role::Reads{}, self.operands);
    visit(role::Writes{}, self.results);
  }
  bool operator==(const CustomCall&) const = default;
};

/// A library call, with steps that compute the same result by kernels only: a backend that does not
/// take the call runs `lowered`.
struct LibraryCallStep {
  static constexpr std::string_view kName = "library call";
  static constexpr bool kOnHost = false;
  LibraryCall call;
  std::vector<BufferId> operands;
  std::vector<BufferId> results;
  SequenceId lowered = 0;

  template <class Self, class Visit>
  static void members(Self& self, const Visit& visit) {
    visit(role::Other{}, self.call);
    visit(role::Reads{}, self.operands);
    visit(role::Writes{}, self.results);
    visit(role::Runs{}, self.lowered);
  }
  bool operator==(const LibraryCallStep&) const = default;
};

struct Step {
  std::variant<Launch, Copy, While, Conditional, CustomCall, LibraryCallStep> action;
  /// Earlier steps of the same sequence that must be done before this one, ascending; only direct
  /// dependencies.
  std::vector<uint32_t> depends;
  /// The ops from which the step was made, with their locations: "stablehlo.add at model.mlir:3:8".
  std::string label;
  /// The op from which the step was made, as an index of the compiler that made it; kNone in a
  /// Program that was read, because the serial form does not contain it.
  uint32_t op = kNone;
  bool operator==(const Step&) const = default;
};

/// Calls visit(id) for each buffer that the step itself names, and for each sequence inside it. If
/// `step` is not const, visit may change the id.
template <class AnyStep, class Visit>
void for_each_buffer(AnyStep& step, const Visit& visit);
template <class AnyStep, class Visit>
void for_each_sequence(AnyStep& step, const Visit& visit);
/// Whether the host runs the step, so that it belongs to no segment.
inline bool is_on_host(const Step& step) {
  return std::visit([](const auto& action) { return action.kOnHost; }, step.action);
}

/// "launch", "custom call" …
inline std::string_view name_of(const Step& step) {
  return std::visit([](const auto& action) { return action.kName; }, step.action);
}

/// Steps in a valid execution order.
struct Sequence {
  std::vector<Step> steps;
  bool operator==(const Sequence&) const = default;
};

struct Program {
  std::string name;
  std::vector<kernel::Kernel> kernels;
  std::vector<Literal> constants;
  std::vector<Buffer> buffers;
  std::vector<Sequence> sequences;  ///< sequences[0] is the entry.
  std::vector<BufferId> parameters;
  std::vector<BufferId> results;
  /// Parameters whose memory the caller donates.
  std::vector<uint32_t> donated;
  int64_t temporary_bytes = 0;

  const Buffer& buffer(BufferId id) const { return buffers[id]; }
  /// The buffer itself, or the buffer of which it is a view.
  BufferId root(BufferId id) const {
    return buffers[id].view_of == kNone ? id : buffers[id].view_of;
  }
};

/// The sequences directly inside a step: condition and body of a loop, the branches of a
/// conditional, the lowered steps of a library call.
std::vector<SequenceId> sequences_within(const Step& step);

/// Buffers that are read and written; a view is listed as its root.
struct Accesses {
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
};
/// The accesses of a step, including those in the sequences inside it; and those of the step
/// itself.
Accesses accesses_of(const Program& program, const Step& step);
Accesses own_accesses_of(const Program& program, const Step& step);

/// The bytes of a buffer in the address space of its kind of memory.
struct ByteRange {
  BufferKind kind{};
  uint32_t index = 0;  ///< 0 of temporaries.
  int64_t begin = 0;
  int64_t end = 0;

  bool overlaps(const ByteRange& other) const {
    return kind == other.kind && index == other.index && begin < other.end && other.begin < end;
  }
};
ByteRange range_of(const Program& program, BufferId id);

/// Whether two buffers have bytes in common.
bool overlap(const Program& program, BufferId a, BufferId b);

/// For each step of a sequence, the earlier steps for which it must wait. They follow from the
/// memory of the buffers and the order of host calls.
std::vector<std::vector<uint32_t>> dependencies_of(const Program& program,
                                                   const Sequence& sequence);

/// Sets `depends` of every step.
void find_dependencies(Program& program);

/// For each result, the donated parameter that one of the first steps copies to it and that no
/// other step uses, so that both may have one memory; kNone if there is none.
std::vector<uint32_t> parameters_of_results(const Program& program);

/// OK, or an error: ids out of range, kernels that do not verify or do not fit their buffers,
/// temporaries outside the block, a launch or copy whose buffers overlap, steps that access the
/// same memory without depending on each other. Safe on a Program with any content.
Status validate(const Program& program);
/// The same for a Program whose kernels have been verified separately; they are not verified again.
Status validate_steps(const Program& program);

/// The text form, for people: `tenon opt --emit=program`.
std::string print(const Program& program);

namespace detail {
template <class Number, class Visit>
void each(Number& number, const Visit& visit) {
  visit(number);
}
template <class Number, class Visit>
void each(std::vector<Number>& numbers, const Visit& visit) {
  for (Number& number : numbers) visit(number);
}
template <class Number, class Visit>
void each(const std::vector<Number>& numbers, const Visit& visit) {
  for (const Number& number : numbers) visit(number);
}
template <class Role>
inline constexpr bool kIsBuffer =
    std::is_same_v<Role, role::Reads> || std::is_same_v<Role, role::Writes> ||
    std::is_same_v<Role, role::Launched>;
}  // namespace detail

template <class AnyStep, class Visit>
void for_each_buffer(AnyStep& step, const Visit& visit) {
  std::visit(
      [&](auto& action) {
        action.members(action, [&](auto role, auto& member) {
          if constexpr (detail::kIsBuffer<decltype(role)>) detail::each(member, visit);
        });
      },
      step.action);
}

template <class AnyStep, class Visit>
void for_each_sequence(AnyStep& step, const Visit& visit) {
  std::visit(
      [&](auto& action) {
        action.members(action, [&](auto role, auto& member) {
          if constexpr (std::is_same_v<decltype(role), role::Runs>) detail::each(member, visit);
        });
      },
      step.action);
}

}  // namespace tenon::program
