// Validation of a Program before it runs.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/kernel/ir/structure.h"
#include "core/kernel/verify/verifier.h"
#include "core/program/program.h"

namespace tenon::program {
namespace {

class Validator {
 public:
  explicit Validator(const Program& program) : program_(program) {}

  Status run() {
    if (program_.temporary_bytes < 0 || program_.temporary_bytes > kMostBytes) {
      return bad("{} bytes of temporaries", program_.temporary_bytes);
    }
    // Sizes first: checks of memory use the sizes of other buffers.
    for (BufferId id = 0; id < program_.buffers.size(); ++id) TENON_TRY(size(id));
    for (const Literal& constant : program_.constants) {
      if (constant.shape().dims().size() > kMostRank)
        return bad("a constant of too many dimensions");
    }
    TENON_TRY(outside(program_.parameters, BufferKind::kParameter, "parameter"));
    TENON_TRY(outside(program_.results, BufferKind::kResult, "result"));
    for (BufferId id = 0; id < program_.buffers.size(); ++id) TENON_TRY(buffer(id));
    std::vector<bool> donated(program_.parameters.size());
    for (const uint32_t index : program_.donated) {
      if (index >= program_.parameters.size()) {
        return bad("donated parameter {} of {}", index, program_.parameters.size());
      }
      if (donated[index]) return bad("parameter {} is donated twice", index);
      donated[index] = true;
    }
    if (program_.sequences.empty()) return bad("it has no entry sequence");
    used_.resize(program_.sequences.size());
    TENON_TRY(sequence(0));
    return order();
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

  Status size(BufferId number) const {
    const Buffer& b = program_.buffers[number];
    if (b.dims.size() > kMostRank)
      return bad("buffer {} has more than {} dimensions", number, kMostRank);
    for (const int64_t d : b.dims) {
      if (d < 0) return bad("buffer {} has a dimension of {}", number, d);
    }
    const auto width = static_cast<int64_t>(storage_bytes(b.type));
    const Result<int64_t> count = checked_element_count(b.dims, width);
    if (!count || *count > kMostBytes / width) {
      return bad("buffer {} is larger than memory can be", number);
    }
    return {};
  }

  // Checks that the i-th parameter or result is a buffer of that kind with index i; a result may be
  // a view of it.
  Status outside(const std::vector<BufferId>& list, BufferKind kind, const char* what) const {
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i] >= program_.buffers.size())
        return bad("{}s: there is no buffer {}", what, list[i]);
      const Buffer* b = &program_.buffers[list[i]];
      if (b->view_of != kNone && kind == BufferKind::kResult) {
        TENON_TRY(id(b->view_of));
        b = &program_.buffers[b->view_of];
      }
      if (b->kind != kind || b->index != i || b->view_of != kNone) {
        return bad("{} {} is buffer {}, which is not of that kind", what, i, list[i]);
      }
    }
    return {};
  }

  // Checks that the caller's memory is as large as the buffer that it is used for.
  Status same_size(BufferId number, const std::vector<BufferId>& list, const char* what) const {
    const Buffer& b = program_.buffers[number];
    if (b.index >= list.size()) return bad("there is no {} {}", what, b.index);
    const int64_t bytes = program_.buffers[list[b.index]].bytes();
    if (b.bytes() == bytes) return {};
    return bad("buffer {} of {} bytes is {} {} of {} bytes", number, b.bytes(), what, b.index,
               bytes);
  }

  Status buffer(BufferId number) {
    const Buffer& b = program_.buffers[number];
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
      case BufferKind::kTemporary:
        if (b.offset < 0 || b.offset % kAlignment != 0 || b.offset > kMostBytes ||
            b.offset + b.bytes() > program_.temporary_bytes) {
          return bad("buffer {} lies at {} to {} of {} bytes of temporaries", number, b.offset,
                     b.offset + b.bytes(), program_.temporary_bytes);
        }
        return {};
      case BufferKind::kConstant:
        if (b.index >= program_.constants.size()) return bad("there is no constant {}", b.index);
        if (program_.constants[b.index].element_type() != b.type ||
            program_.constants[b.index].data().size() != static_cast<size_t>(b.bytes())) {
          return bad("constant {} has another type or size than buffer {}", b.index, number);
        }
        return {};
      case BufferKind::kParameter:
        return same_size(number, program_.parameters, "parameter");
      case BufferKind::kResult:
        return same_size(number, program_.results, "result");
    }
    return {};
  }

  Status sequence(SequenceId number) {
    if (number >= program_.sequences.size()) return bad("there is no sequence {}", number);
    if (used_[number]) return bad("sequence {} is used twice", number);
    used_[number] = true;
    steps_ += program_.sequences[number].steps.size();
    if (steps_ > kMostSteps) return bad("more than {} steps", kMostSteps);
    if (++depth_ > kMostNesting) return bad("steps nested more than {} deep", kMostNesting);
    const std::vector<Step>& steps = program_.sequences[number].steps;
    for (uint32_t i = 0; i < steps.size(); ++i) {
      for (size_t k = 0; k < steps[i].depends.size(); ++k) {
        const uint32_t d = steps[i].depends[k];
        if (d >= i) return bad("step {} of sequence {} depends on step {}", i, number, d);
        if (k > 0 && steps[i].depends[k - 1] >= d) {
          return bad("step {} of sequence {}: its dependencies are not in order", i, number);
        }
      }
      Status status = std::visit([&](const auto& action) { return step(action); }, steps[i].action);
      if (!status.ok()) return status;
      for (const BufferId w : accesses_of(program_, steps[i]).writes) {
        const BufferKind kind = program_.buffer(w).kind;
        if (kind == BufferKind::kParameter || kind == BufferKind::kConstant) {
          return bad("step {} of sequence {} writes to a {}", i, number,
                     kind == BufferKind::kParameter ? "parameter" : "constant");
        }
      }
    }
    --depth_;
    return {};
  }

  // Checks that steps which access the same memory, one of them writing, wait for each other,
  // directly or indirectly.
  Status order() const {
    for (SequenceId s = 0; s < program_.sequences.size(); ++s) {
      if (!used_[s]) return bad("sequence {} is never run", s);
      const std::vector<Step>& steps = program_.sequences[s].steps;
      const auto needed = dependencies_of(program_, program_.sequences[s]);
      for (uint32_t i = 0; i < steps.size(); ++i) {
        for (const uint32_t d : needed[i]) {
          if (waits(steps, i, d)) continue;
          return bad(
              "step {} of sequence {} does not wait for step {}, which touches the same memory", i,
              s, d);
        }
      }
    }
    return {};
  }

  // Whether step `i` begins after `d` is done; in most cases `i` lists `d` itself.
  static bool waits(const std::vector<Step>& steps, uint32_t i, uint32_t d) {
    if (std::ranges::binary_search(steps[i].depends, d)) return true;
    std::vector<bool> seen(i);
    std::vector<uint32_t> open = steps[i].depends;
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      if (at == d) return true;
      if (at < d || seen[at]) continue;
      seen[at] = true;
      open.insert(open.end(), steps[at].depends.begin(), steps[at].depends.end());
    }
    return false;
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
      const int64_t needed = m.bytes();
      const int64_t given = program_.buffer(launch.buffers[i]).bytes();
      if (needed > given) {
        return bad("@{}: %{} takes {} bytes, buffer {} has {}", kernel.name, m.name, needed,
                   launch.buffers[i], given);
      }
    }
    return aliases(launch, kernel);
  }

  struct Place {
    ByteRange range;
    uint32_t number = 0;  // Of the kernel's buffer.
  };

  // Checks that a buffer to which a kernel stores overlaps no other buffer, unless the kernel
  // declares it (K4). The buffers are visited in order of address, together with the earlier ones
  // that extend this far.
  Status aliases(const Launch& launch, const kernel::Kernel& kernel) const {
    std::vector<Place> places;
    for (uint32_t i = 0; i < launch.buffers.size(); ++i) {
      const ByteRange range = range_of(program_, launch.buffers[i]);
      if (range.begin < range.end) places.push_back({range, i});
    }
    std::ranges::sort(places, {}, [](const Place& place) {
      const ByteRange& range = place.range;
      return std::tuple(range.kind, range.index, range.begin, place.number);
    });
    std::vector<Place> written;  // Those that extend this far: one, or two in place.
    std::vector<Place> read;
    for (const Place& place : places) {
      const auto is_behind = [&](const Place& other) { return !other.range.overlaps(place.range); };
      const bool writes = kernel.memories[place.number].access != kernel::Access::kIn;
      std::erase_if(written, is_behind);
      for (const Place& other : written) TENON_TRY(apart(kernel, place, other));
      if (!writes) {  // Buffers that are only read may overlap.
        read.push_back(place);
        continue;
      }
      std::erase_if(read, is_behind);
      for (const Place& other : read) TENON_TRY(apart(kernel, place, other));
      written.push_back(place);
    }
    return {};
  }

  // Refuses two buffers of a launch that overlap, unless one lies over the other.
  Status apart(const kernel::Kernel& kernel, const Place& a, const Place& b) const {
    const auto writes = [&](const Place& place) {
      return kernel.memories[place.number].access != kernel::Access::kIn;
    };
    const bool first = writes(a) && (!writes(b) || a.number < b.number);
    const Place& over = first ? a : b;
    const Place& under = first ? b : a;
    const kernel::Memory& written = kernel.memories[over.number];
    if (written.over == under.number && over.range.begin == under.range.begin) return {};
    return bad("@{}: %{} lies in the memory of %{}", kernel.name, written.name,
               kernel.memories[under.number].name);
  }

  Status step(const Copy& copy) {
    TENON_TRY(ids({copy.destination, copy.source}, "a copy"));
    const int64_t to = program_.buffer(copy.destination).bytes();
    const int64_t from = program_.buffer(copy.source).bytes();
    if (to != from) return bad("a copy of {} bytes to {}", from, to);
    if (!overlap(program_, copy.source, copy.destination)) return {};
    return bad("a copy of buffer {} to itself or over it", copy.source);
  }

  Status step(const While& loop) {
    TENON_TRY(id(loop.predicate));
    const Buffer& predicate = program_.buffer(loop.predicate);
    if (predicate.type != ElementType::kPred || predicate.bytes() != 1) {
      return bad("a while's predicate is not a pred");
    }
    TENON_TRY(sequence(loop.condition));
    return sequence(loop.body);
  }

  Status step(const Conditional& conditional) {
    TENON_TRY(id(conditional.index));
    const Buffer& index = program_.buffer(conditional.index);
    const bool fits =
        index.dims.empty() && (index.type == ElementType::kPred || index.type == ElementType::kS32);
    if (!fits) return bad("a conditional's index is neither pred nor s32");
    if (conditional.branches.empty()) return bad("a conditional without branches");
    if (index.type == ElementType::kPred && conditional.branches.size() != 2) {
      return bad("a conditional on a pred has {} branches", conditional.branches.size());
    }
    for (const SequenceId branch : conditional.branches) TENON_TRY(sequence(branch));
    return {};
  }

  // A step without rules of its own: checks that its buffers and sequences exist.
  template <class Action>
  Status step(const Action& action) {
    Status status;
    action.members(action, [&](auto role, const auto& member) {
      using Role = decltype(role);
      if constexpr (detail::kIsBuffer<Role>) {
        detail::each(member, [&](BufferId id) {
          if (status.ok() && id >= program_.buffers.size()) {
            status = bad("a {}: there is no buffer {}", Action::kName, id);
          }
        });
      } else if constexpr (std::is_same_v<Role, role::Runs>) {
        detail::each(member, [&](SequenceId id) {
          if (status.ok()) status = sequence(id);
        });
      }
    });
    return status;
  }

  Status step(const LibraryCallStep& call) {
    TENON_TRY(ids(call.operands, "a call"));
    TENON_TRY(ids(call.results, "a call"));
    const auto shapes = [&](const std::vector<BufferId>& list) {
      std::vector<Shape> found;
      for (const BufferId b : list) {
        found.emplace_back(program_.buffer(b).type, program_.buffer(b).dims);
      }
      return found;
    };
    const Status status = check(call.call, shapes(call.operands), shapes(call.results));
    if (!status.ok()) return bad("{}", status.message());
    TENON_TRY(sequence(call.lowered));
    return whole(call);
  }

  // A library call has the effects of its `lowered` steps: it writes the results, which overlap
  // neither the operands nor each other, and no other memory that is read later.
  Status whole(const LibraryCallStep& call) const {
    for (size_t r = 0; r < call.results.size(); ++r) {
      for (size_t k = 0; k < r + call.operands.size(); ++k) {
        const BufferId other = k < r ? call.results[k] : call.operands[k - r];
        if (!overlap(program_, call.results[r], other)) continue;
        return bad("{}: result {} lies in the memory of buffer {}", name_of(call.call), r, other);
      }
    }
    for (const Step& step : program_.sequences[call.lowered].steps) {
      // A custom call that a device takes is lowered to that of the host.
      const bool is_simple = std::holds_alternative<Launch>(step.action) ||
                             std::holds_alternative<Copy>(step.action) ||
                             (std::holds_alternative<CustomCall>(step.action) &&
                              std::holds_alternative<Composite>(call.call));
      if (!is_simple) return bad("{}: it is lowered to more than kernels", name_of(call.call));
      for (const BufferId w : accesses_of(program_, step).writes) {
        const bool of_result = std::ranges::any_of(
            call.results, [&](BufferId result) { return program_.root(result) == w; });
        if (of_result || program_.buffer(w).kind == BufferKind::kTemporary) continue;
        return bad("{}: it is lowered to steps that write buffer {}", name_of(call.call), w);
      }
    }
    return {};
  }

  static constexpr int64_t kMostBytes = int64_t{1} << 50;
  static constexpr int kMostNesting = 200;
  static constexpr size_t kMostRank = kernel::kMostRank;
  static constexpr size_t kMostSteps = 1 << 20;

  const Program& program_;
  std::vector<bool> used_;
  int depth_ = 0;
  size_t steps_ = 0;
};

}  // namespace

Status validate(const Program& program) {
  for (const kernel::Kernel& kernel : program.kernels) TENON_TRY(kernel::verify(kernel));
  return validate_steps(program);
}

Status validate_steps(const Program& program) { return Validator(program).run(); }

}  // namespace tenon::program
