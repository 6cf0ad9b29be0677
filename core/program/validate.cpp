// What a Program must be before anyone runs it.
#include <fmt/format.h>

#include "core/kernel/verifier.h"
#include "core/program/program.h"

namespace tenon::program {
namespace {

class Validator {
 public:
  explicit Validator(const Program& program) : program_(program) {}

  Status run() {
    for (const kernel::Kernel& kernel : program_.kernels) TENON_TRY(kernel::verify(kernel));
    for (BufferId id = 0; id < program_.buffers.size(); ++id) TENON_TRY(buffer(id));
    TENON_TRY(ids(program_.parameters, "parameters"));
    TENON_TRY(ids(program_.results, "results"));
    for (const uint32_t index : program_.donated) {
      if (index >= program_.parameters.size())
        return bad("donated parameter {} of {}", index, program_.parameters.size());
    }
    if (program_.sequences.empty()) return bad("it has no entry sequence");
    used_.resize(program_.sequences.size());
    return sequence(0);
  }

 private:
  template <class... Args>
  Status bad(fmt::format_string<Args...> format, Args&&... args) const {
    return Status(invalid_argument("program {}: {}", program_.name,
                                   fmt::format(format, std::forward<Args>(args)...)));
  }

  Status id(BufferId id) const {
    if (id < program_.buffers.size()) return {};
    return bad("there is no buffer {}", id);
  }
  Status ids(const std::vector<BufferId>& list, const char* what) const {
    for (const BufferId b : list) {
      if (b >= program_.buffers.size()) return bad("{}: there is no buffer {}", what, b);
    }
    return {};
  }

  Status buffer(BufferId number) {
    const Buffer& b = program_.buffers[number];
    for (const int64_t d : b.dims) {
      if (d < 0) return bad("buffer {} has a dimension of {}", number, d);
    }
    if (b.view_of != kNone) {
      TENON_TRY(id(b.view_of));
      const Buffer& root = program_.buffers[b.view_of];
      if (root.view_of != kNone) return bad("buffer {} is a view of a view", number);
      if (root.bytes() != b.bytes()) {
        return bad("buffer {} of {} bytes is a view of {} bytes", number, b.bytes(), root.bytes());
      }
      return {};
    }
    switch (b.kind) {
      case MemoryKind::kTemporary:
        if (b.offset < 0 || b.offset % kAlignment != 0 ||
            b.offset + b.bytes() > program_.temporary_bytes) {
          return bad("buffer {} lies at {} to {} of {} bytes of temporaries", number, b.offset,
                     b.offset + b.bytes(), program_.temporary_bytes);
        }
        return {};
      case MemoryKind::kConstant:
        if (b.index >= program_.constants.size()) return bad("there is no constant {}", b.index);
        if (program_.constants[b.index].data().size() != static_cast<size_t>(b.bytes())) {
          return bad("constant {} has another size than buffer {}", b.index, number);
        }
        return {};
      case MemoryKind::kParameter:
        if (b.index >= program_.parameters.size()) return bad("there is no parameter {}", b.index);
        return {};
      case MemoryKind::kResult:
        if (b.index >= program_.results.size()) return bad("there is no result {}", b.index);
        return {};
    }
    return {};
  }

  Status sequence(SequenceId number) {
    if (number >= program_.sequences.size()) return bad("there is no sequence {}", number);
    if (used_[number]) return bad("sequence {} is used twice", number);
    used_[number] = true;
    const std::vector<Step>& steps = program_.sequences[number].steps;
    for (uint32_t i = 0; i < steps.size(); ++i) {
      for (const uint32_t d : steps[i].depends) {
        if (d >= i) return bad("step {} of sequence {} depends on step {}", i, number, d);
      }
      Status status = std::visit([&](const auto& action) { return step(action); }, steps[i].action);
      if (!status.ok()) return status;
      for (const BufferId w : accesses_of(program_, steps[i]).writes) {
        const MemoryKind kind = program_.buffer(w).kind;
        if (kind == MemoryKind::kParameter || kind == MemoryKind::kConstant) {
          return bad("step {} of sequence {} writes to a {}", i, number,
                     kind == MemoryKind::kParameter ? "parameter" : "constant");
        }
      }
    }
    return {};
  }

  Status step(const Launch& launch) {
    if (launch.kernel >= program_.kernels.size())
      return bad("there is no kernel {}", launch.kernel);
    const kernel::Kernel& kernel = program_.kernels[launch.kernel];
    TENON_TRY(ids(launch.buffers, "a launch"));
    if (launch.buffers.size() != kernel.buffer_count ||
        launch.scalars.size() != kernel.scalars.size()) {
      return bad("@{} takes {} buffers and {} scalars, the launch has {} and {}", kernel.name,
                 kernel.buffer_count, kernel.scalars.size(), launch.buffers.size(),
                 launch.scalars.size());
    }
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      const kernel::Memory& m = kernel.memories[i];
      const int64_t needed = Shape(m.type, {m.span()}).byte_size();
      const int64_t given = program_.buffer(launch.buffers[i]).bytes();
      if (needed > given) {
        return bad("@{}: %{} takes {} bytes, buffer {} has {}", kernel.name, m.name, needed,
                   launch.buffers[i], given);
      }
    }
    return {};
  }

  Status step(const Copy& copy) {
    TENON_TRY(ids({copy.destination, copy.source}, "a copy"));
    const int64_t to = program_.buffer(copy.destination).bytes();
    const int64_t from = program_.buffer(copy.source).bytes();
    return to == from ? Status() : bad("a copy of {} bytes to {}", from, to);
  }

  Status step(const While& loop) {
    TENON_TRY(id(loop.predicate));
    if (program_.buffer(loop.predicate).bytes() != 1) return bad("a while's predicate is no pred");
    TENON_TRY(sequence(loop.condition));
    return sequence(loop.body);
  }

  Status step(const Conditional& conditional) {
    TENON_TRY(id(conditional.index));
    const Buffer& index = program_.buffer(conditional.index);
    const bool fits =
        index.dims.empty() && (index.type == ElementType::kPred || index.type == ElementType::kS32);
    if (!fits) return bad("a conditional's index is no pred or s32");
    if (conditional.branches.empty()) return bad("a conditional without branches");
    for (const SequenceId branch : conditional.branches) TENON_TRY(sequence(branch));
    return {};
  }

  Status step(const CustomCall& call) {
    TENON_TRY(ids(call.operands, "a custom call"));
    return ids(call.results, "a custom call");
  }

  const Program& program_;
  std::vector<bool> used_;
};

}  // namespace

Status validate(const Program& program) { return Validator(program).run(); }

}  // namespace tenon::program
