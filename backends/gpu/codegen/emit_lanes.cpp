// Lanes loops as the threads of a block, and barriers between them.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <utility>

#include "backends/gpu/codegen/emitter.h"
#include "backends/llvm/loops.h"
#include "backends/llvm/operations.h"

namespace tenon::gpu {

using kernel::Node;

namespace {

constexpr int64_t kMostTurnsUnrolled = 16;  // In a lanes loop with private memory.

}  // namespace

void GpuKernelEmitter::barrier() {
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
  touched_ = {};
}

void GpuKernelEmitter::touch(const AccessSummary& touched) {
  if (conflict(touched_, touched)) barrier();
  touched_.add(touched);
}

void GpuKernelEmitter::as_first(const std::function<void()>& body) {
  codegen::emit_where(b_, b_.CreateICmpEQ(thread_, b_.getInt32(0)), {}, [&] {
    body();
    return std::vector<Value*>{};
  });
}

// Thread t has the runs t, t + threads …: its iteration s is run t + s * threads. The loop runs
// over these iterations, whose number is the same for all threads, so that it can be unrolled.
std::vector<llvm::Value*> GpuKernelEmitter::own_runs(
    const Node& n, const AccessRuns& runs, const std::vector<Value*>& inits, bool unrolled,
    const std::function<std::vector<Value*>(Value* turn, const std::vector<Value*>&)>& body) {
  const int64_t count = element_count(n.extents) / runs.width();
  if (count == 0) return inits;
  const auto threads = static_cast<int64_t>(plan_.threads());
  const int64_t turns = (count + threads - 1) / threads;
  llvm::Type* const type = turns * threads < INT32_MAX ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* const thread = b_.CreateZExt(thread_, type);
  Dims extents = n.extents;
  if (!extents.empty()) extents.back() /= runs.width();
  const Ids& indices = kernel_.block(n.blocks[0]).arguments;
  const auto turn = [&](Value* number_of_turn, const std::vector<Value*>& carried) {
    Value* const first = b_.CreateMul(number_of_turn, number(type, threads), "", true, true);
    Value* const run = b_.CreateAdd(first, thread, "", true, true);
    const auto inside = [&] {
      set_indices(indices, extents, run);
      if (runs.width() > 1) {
        RunValues& last = values_[indices.back()];
        Value* const start =
            b_.CreateMul(last[0], number(last[0]->getType(), runs.width()), "", true, true);
        last.clear();
        for (int64_t i = 0; i < runs.width(); ++i) {
          last.push_back(b_.CreateAdd(start, number(start->getType(), i), "", true, true));
        }
      }
      return body(number_of_turn, carried);
    };
    if (count % threads == 0) return inside();
    return codegen::emit_where(b_, b_.CreateICmpULT(run, number(type, count)), carried, inside);
  };
  if (turns == 1) return turn(number(type, 0), inits);
  return codegen::emit_loop(b_, number(type, 0), number(type, turns), 1, inits, turn, unrolled);
}

void GpuKernelEmitter::lanes(const Node& n) {
  touch(plan_.touched(n));
  const AccessRuns& runs = plan_.runs(n);
  const bool own = touches_private(n.blocks[0]);
  const int64_t turns = (element_count(n.extents) + plan_.threads() - 1) / plan_.threads();
  in_lanes_ = true;
  if (runs.width() > 1) runs_ = &runs;
  own_runs(n, runs, {}, own && turns <= kMostTurnsUnrolled,
           [&](Value* turn, const std::vector<Value*>&) {
             turn_ = turn;
             block(n.blocks[0]);
             return std::vector<Value*>{};
           });
  runs_ = nullptr;
  in_lanes_ = false;
}

}  // namespace tenon::gpu
