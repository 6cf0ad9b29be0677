#include "backends/gpu/codegen/segment.h"

#include <map>

#include "core/kernel/ir/builder.h"
#include "core/program/segment.h"

namespace tenon::gpu {
namespace {

using program::BufferId;
using program::Program;

constexpr int64_t kCopied = 1024;  // Elements that a block copies.

// y = x: words of four bytes if the bytes are a multiple of that.
kernel::Kernel copy_kernel(int64_t bytes) {
  const bool words = bytes % 4 == 0;
  const ElementType type = words ? ElementType::kU32 : ElementType::kU8;
  const int64_t count = words ? bytes / 4 : bytes;
  const bool narrow = count + kCopied <= INT32_MAX;
  kernel::Builder b("copy", narrow ? ElementType::kS32 : ElementType::kS64);
  const kernel::MemoryId x = b.buffer("x", type, {count}, kernel::Access::kIn);
  const kernel::MemoryId y = b.buffer("y", type, {count}, kernel::Access::kOut);
  const int64_t each = std::min(count, kCopied);
  const int64_t blocks = (count + each - 1) / each;
  const kernel::Values block = b.grid({blocks});
  b.lanes({each}, [&](const kernel::Values& lane) {
    const kernel::ValueId at = b.add(b.mul(block[0], b.index(each)), lane[0]);
    const auto copy = [&] { b.store(b.load(x, {at}), y, {at}); };
    if (blocks * each == count) return copy();
    b.if_then(b.compare(kernel::OpCode::kLt, at, b.index(count)), copy);
  });
  return b.finish();
}

// The kernels of an image: those of Programs, and those that copy.
struct SegmentKernels {
  std::vector<const kernel::Kernel*> list;
  std::map<int64_t, std::pair<uint32_t, kernel::Kernel>> copies;  // By their bytes.
};

class GpuSegmentMaker {
 public:
  GpuSegmentMaker(const Program& program, SegmentKernels& kernels)
      : program_(program),
        kernels_(kernels),
        first_kernel_(static_cast<uint32_t>(kernels.list.size())) {
    for (const kernel::Kernel& each : program.kernels) kernels_.list.push_back(&each);
  }

  Status run() {
    segment_.memories = program::memory_sizes(program_);
    return sequence(0).status;
  }
  GpuSegment take() { return std::move(segment_); }

 private:
  struct Made {
    Status status;
    uint32_t number = 0;
  };

  Made sequence(program::SequenceId id) {
    Made made;
    made.number = static_cast<uint32_t>(segment_.sequences.size());
    segment_.sequences.emplace_back();
    std::vector<SegmentStep> steps;
    made.status = add(id, steps);
    segment_.sequences[made.number] = std::move(steps);
    return made;
  }

  Status add(program::SequenceId id, std::vector<SegmentStep>& steps) {
    for (const program::Step& step : program_.sequences[id].steps) {
      TENON_TRY(
          std::visit([&](const auto& action) { return add_step(action, steps); }, step.action));
    }
    return {};
  }

  Status add_step(const program::Launch& launch, std::vector<SegmentStep>& steps) {
    SegmentLaunch made = {first_kernel_ + launch.kernel, {}, launch.scalars, false};
    for (const BufferId id : launch.buffers) made.buffers.push_back(place(id));
    steps.emplace_back(std::move(made));
    return {};
  }

  Status add_step(const program::Copy& copy, std::vector<SegmentStep>& steps) {
    const int64_t bytes = program_.buffer(copy.destination).bytes();
    if (bytes == 0) return {};
    const auto [known, added] = kernels_.copies.try_emplace(
        bytes, static_cast<uint32_t>(kernels_.list.size()), kernel::Kernel());
    if (added) {
      known->second.second = copy_kernel(bytes);
      kernels_.list.push_back(&known->second.second);
    }
    steps.emplace_back(SegmentLaunch{
        known->second.first, {place(copy.source), place(copy.destination)}, {}, true});
    return {};
  }

  Status add_step(const program::While& loop, std::vector<SegmentStep>& steps) {
    const Made condition = sequence(loop.condition);
    TENON_TRY(Status(condition.status));
    const Made body = sequence(loop.body);
    steps.emplace_back(SegmentLoop{condition.number, body.number, place(loop.predicate)});
    return body.status;
  }

  Status add_step(const program::Conditional& conditional, std::vector<SegmentStep>& steps) {
    SegmentChoice choice;
    choice.index = place(conditional.index);
    choice.is_pred = program_.buffer(conditional.index).type == ElementType::kPred;
    for (const program::SequenceId id : conditional.branches) {
      const Made branch = sequence(id);
      TENON_TRY(Status(branch.status));
      choice.branches.push_back(branch.number);
    }
    steps.emplace_back(std::move(choice));
    return {};
  }

  Status add_step(const program::LibraryCallStep& call, std::vector<SegmentStep>& steps) {
    return add(call.lowered, steps);
  }

  Status add_step(const program::CustomCall& call, std::vector<SegmentStep>& /*steps*/) {
    return unimplemented("gpu: the host runs custom call @{}", call.target);
  }

  // In the order of memory_sizes().
  SegmentPlace place(BufferId id) const {
    const program::Buffer& buffer = program_.buffer(program_.root(id));
    const size_t results = program_.parameters.size();
    const size_t constants = results + program_.results.size();
    const size_t temporaries = constants + program_.constants.size();
    switch (buffer.kind) {
      case program::BufferKind::kParameter:
        return {buffer.index, 0};
      case program::BufferKind::kResult:
        return {static_cast<uint32_t>(results + buffer.index), 0};
      case program::BufferKind::kConstant:
        return {static_cast<uint32_t>(constants + buffer.index), 0};
      case program::BufferKind::kTemporary:
        break;
    }
    if (program_.temporary_bytes == 0) return {program::kNone, 0};
    return {static_cast<uint32_t>(temporaries), buffer.offset};
  }

  const Program& program_;
  SegmentKernels& kernels_;
  const uint32_t first_kernel_;
  GpuSegment segment_;
};

}  // namespace

Result<CompiledKernels> compile_segment(const backend::TargetInfo& target, const Program& program,
                                        Assembler& assembler) {
  std::vector<GpuSegment> segments;
  const Program* const programs[] = {&program};
  TENON_ASSIGN(CompiledKernels compiled, compile_segments(target, programs, assembler, segments));
  compiled.code.segment = std::move(segments[0]);
  return compiled;
}

Result<CompiledKernels> compile_segments(const backend::TargetInfo& target,
                                         std::span<const Program* const> programs,
                                         Assembler& assembler, std::vector<GpuSegment>& segments) {
  SegmentKernels kernels;
  for (const Program* const each : programs) {
    GpuSegmentMaker maker(*each, kernels);
    TENON_TRY(maker.run());
    segments.push_back(maker.take());
  }
  return compile(target, kernels.list, assembler);
}

}  // namespace tenon::gpu
