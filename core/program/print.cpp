// The text form of Programs.
#include <fmt/format.h>

#include "core/kernel/text/text.h"
#include "core/program/program.h"

namespace tenon::program {
namespace {

class ProgramPrinter {
 public:
  explicit ProgramPrinter(const Program& program) : program_(program) {}

  std::string run() {
    out_ = fmt::format("program @{}: {} kernels, {} constants, {} bytes of temporaries\n",
                       program_.name, program_.kernels.size(), program_.constants.size(),
                       program_.temporary_bytes);
    for (BufferId id = 0; id < program_.buffers.size(); ++id) buffer(id);
    line(0, "entry");
    sequence(0, 1);
    std::string results;
    for (const BufferId id : program_.results) results += fmt::format(" %{}", id);
    line(0, "results" + results);
    for (const kernel::Kernel& kernel : program_.kernels) out_ += "\n" + kernel::print(kernel);
    return std::move(out_);
  }

 private:
  void line(int depth, const std::string& text) {
    out_.append(2 * static_cast<size_t>(depth), ' ').append(text) += '\n';
  }

  void buffer(BufferId id) {
    const Buffer& b = program_.buffer(id);
    std::string place;
    if (b.view_of != kNone) {
      place = fmt::format("view of %{}", b.view_of);
    } else if (b.kind == BufferKind::kTemporary) {
      place = fmt::format("temporary at {}", b.offset);
    } else {
      static constexpr const char* kKindNames[] = {"parameter", "result", "constant"};
      place = fmt::format("{} {}", kKindNames[static_cast<size_t>(b.kind)], b.index);
    }
    line(0, fmt::format("%{}: {} {}", id, Shape(b.type, b.dims).to_string(), place));
  }

  std::string list(const std::vector<BufferId>& ids) const {
    std::string text;
    for (const BufferId id : ids) text += fmt::format("{}%{}", text.empty() ? "" : ", ", id);
    return text;
  }

  void sequence(SequenceId id, int depth) {
    const std::vector<Step>& steps = program_.sequences[id].steps;
    for (size_t i = 0; i < steps.size(); ++i) {
      std::string depends;
      for (const uint32_t d : steps[i].depends) depends += fmt::format(" {}", d);
      if (!depends.empty()) depends = " after" + depends;
      if (!steps[i].label.empty()) depends += "  // " + steps[i].label;
      std::visit([&](const auto& action) { step(action, i, depends, depth); }, steps[i].action);
    }
  }

  void step(const Launch& launch, size_t i, const std::string& tail, int depth) {
    const kernel::Kernel& kernel = program_.kernels[launch.kernel];
    line(depth, fmt::format("{}: launch @{}({}){}", i, kernel.name, list(launch.buffers), tail));
  }
  void step(const Copy& copy, size_t i, const std::string& tail, int depth) {
    line(depth, fmt::format("{}: copy %{} = %{}{}", i, copy.destination, copy.source, tail));
  }
  void step(const While& loop, size_t i, const std::string& tail, int depth) {
    line(depth, fmt::format("{}: while %{}{}", i, loop.predicate, tail));
    sequence(loop.condition, depth + 2);
    line(depth, "do");
    sequence(loop.body, depth + 2);
  }
  void step(const Conditional& conditional, size_t i, const std::string& tail, int depth) {
    line(depth, fmt::format("{}: conditional %{}{}", i, conditional.index, tail));
    for (size_t b = 0; b < conditional.branches.size(); ++b) {
      line(depth, fmt::format("branch {}", b));
      sequence(conditional.branches[b], depth + 2);
    }
  }
  void step(const CustomCall& call, size_t i, const std::string& tail, int depth) {
    line(depth, fmt::format("{}: call @{}({}) -> ({}){}", i, call.target, list(call.operands),
                            list(call.results), tail));
  }
  void step(const LibraryCallStep& call, size_t i, const std::string& tail, int depth) {
    line(depth, fmt::format("{}: {} ({}) -> ({}){}", i, to_string(call.call), list(call.operands),
                            list(call.results), tail));
    line(depth, "lowered");
    sequence(call.lowered, depth + 2);
  }

  // A step without a text form of its own.
  template <class Action>
  void step(const Action& action, size_t i, const std::string& tail, int depth) {
    std::string buffers;
    std::vector<SequenceId> inside;
    action.members(action, [&](auto role, const auto& member) {
      using Role = decltype(role);
      if constexpr (detail::kIsBuffer<Role>) {
        detail::each(member, [&](BufferId id) {
          buffers += fmt::format("{}{}%{}", buffers.empty() ? "" : ", ",
                                 std::is_same_v<Role, role::Writes> ? "=" : "", id);
        });
      } else if constexpr (std::is_same_v<Role, role::Runs>) {
        detail::each(member, [&](SequenceId id) { inside.push_back(id); });
      }
    });
    line(depth, fmt::format("{}: {}({}){}", i, Action::kName, buffers, tail));
    for (const SequenceId id : inside) sequence(id, depth + 2);
  }

  const Program& program_;
  std::string out_;
};

}  // namespace

std::string print(const Program& program) { return ProgramPrinter(program).run(); }

}  // namespace tenon::program
