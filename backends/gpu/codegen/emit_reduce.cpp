// Reductions. A thread combines one leaf after the other; the threads of a block combine their
// partial results by shuffles within each warp, then through shared memory between warps.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <utility>

#include "backends/gpu/codegen/emitter.h"
#include "backends/llvm/loops.h"
#include "backends/llvm/operations.h"
#include "core/kernel/ir/visitor.h"

namespace tenon::gpu {

using kernel::Node;
using kernel::NodeId;

namespace {

// Whether the block contains a loop, which might not terminate.
bool may_loop(const kernel::Kernel& kernel, kernel::BlockId id) {
  return any_node(kernel, id,
                  [](const Node& n) { return kernel::is<kernel::OnWhile, kernel::OnFor>(n.op); });
}

}  // namespace

void GpuKernelEmitter::reduce(const Node& n) {
  if (n.over_lanes && outside()) return reduce_over_lanes(n);
  const AccessSummary before = touched_;
  if (outside()) touched_.add(plan_.touched(n));
  reduce_serially(n);
  touched_.add(before);
}

std::vector<llvm::Value*> GpuKernelEmitter::combine_scalars(const Node& n,
                                                            const std::vector<Value*>& left,
                                                            const std::vector<Value*>& right) {
  const auto lists = [](const std::vector<Value*>& values) {
    Many many;
    for (Value* const value : values) many.push_back({value});
    return many;
  };
  const AccessRuns* const outer = std::exchange(runs_, nullptr);
  const Many result = combine(n, lists(left), lists(right));
  runs_ = outer;
  std::vector<Value*> values;
  for (const RunValues& each : result) values.push_back(each[0]);
  return values;
}

std::vector<llvm::Value*> GpuKernelEmitter::combine_if(Value* condition,
                                                       const std::vector<Value*>& otherwise,
                                                       const Node& n,
                                                       const std::vector<Value*>& left,
                                                       const std::vector<Value*>& right) {
  if (may_loop(kernel_, n.blocks[1])) {
    return codegen::emit_where(b_, condition, otherwise,
                               [&] { return combine_scalars(n, left, right); });
  }
  std::vector<Value*> values = combine_scalars(n, left, right);
  for (size_t k = 0; k < values.size(); ++k) {
    values[k] = b_.CreateSelect(condition, values[k], otherwise[k]);
  }
  return values;
}

void GpuKernelEmitter::reduce_over_lanes(const Node& n) {
  touch(plan_.touched(n));
  const int64_t count = element_count(n.extents);
  const Many inits = forms(n.operands);
  if (count == 0) return set(n.results, inits);
  const auto threads = static_cast<int64_t>(plan_.threads());
  // The first threads have a leaf. If there is a neutral element, all others have that.
  int64_t active = threads;
  std::vector<Value*> partials;
  in_lanes_ = true;
  if (n.commutative) {
    if (codegen::identity_of(context_, kernel_, n) == nullptr) {
      active = std::min(count / plan_.runs(n).width(), threads);
    }
    partials = strided_partials(n);
  } else {
    const int64_t run = (count + threads - 1) / threads;
    active = (count + run - 1) / run;
    partials = ordered_partials(n);
  }
  partials = within_warps(n, std::move(partials), active);
  const std::vector<Value*> all = between_warps(n, partials, (active + kWarp - 1) / kWarp);
  in_lanes_ = false;
  Many results;
  for (Value* const each : all) results.push_back({each});
  set(n.results, results);
}

std::vector<llvm::Value*> GpuKernelEmitter::strided_partials(const Node& n) {
  llvm::Constant* const neutral = codegen::identity_of(context_, kernel_, n);
  std::vector<Value*> inits;
  for (const kernel::ValueId result : n.results) {
    llvm::Type* const type = codegen::type_of(context_, kernel_.value(result).type);
    inits.push_back(neutral != nullptr ? neutral : llvm::Constant::getNullValue(type));
  }
  const AccessRuns& runs = plan_.runs(n);
  const auto width = static_cast<size_t>(runs.width());
  return own_runs(n, runs, inits, false, [&](Value* turn, const std::vector<Value*>& carried) {
    if (width > 1) runs_ = &runs;
    const Many given = block(n.blocks[0]);
    runs_ = nullptr;
    std::vector<std::vector<Value*>> leaves(width);
    for (size_t i = 0; i < width; ++i) {
      for (const RunValues& each : given) leaves[i].push_back(each[each.size() == 1 ? 0 : i]);
    }
    for (size_t half = width / 2; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) {
        leaves[i] = combine_scalars(n, leaves[2 * i], leaves[2 * i + 1]);
      }
    }
    if (neutral != nullptr) return combine_scalars(n, carried, leaves[0]);
    Value* const later = b_.CreateICmpNE(turn, number(turn->getType(), 0));
    return combine_if(later, leaves[0], n, carried, leaves[0]);
  });
}

std::vector<llvm::Value*> GpuKernelEmitter::ordered_partials(const Node& n) {
  const int64_t count = element_count(n.extents);
  const auto threads = static_cast<int64_t>(plan_.threads());
  const int64_t run = (count + threads - 1) / threads;
  llvm::Type* const type = run * threads < INT32_MAX ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* const start = b_.CreateMul(b_.CreateZExt(thread_, type), number(type, run));
  std::vector<Value*> none;
  for (const kernel::ValueId result : n.results) {
    none.push_back(
        llvm::Constant::getNullValue(codegen::type_of(context_, kernel_.value(result).type)));
  }
  return codegen::emit_loop(
      b_, number(type, 0), number(type, run), 1, none,
      [&](Value* i, const std::vector<Value*>& carried) {
        Value* const place = b_.CreateAdd(start, i);
        return codegen::emit_where(b_, b_.CreateICmpULT(place, number(type, count)), carried, [&] {
          set_indices(kernel_.block(n.blocks[0]).arguments, n.extents, place);
          std::vector<Value*> leaf;
          for (const RunValues& each : block(n.blocks[0])) leaf.push_back(each[0]);
          return combine_if(b_.CreateICmpNE(i, number(type, 0)), leaf, n, carried, leaf);
        });
      });
}

// Words of 32 bits.
llvm::Value* GpuKernelEmitter::shuffle(llvm::Intrinsic::ID id, Value* value, uint32_t lane) {
  llvm::Type* const type = value->getType();
  const unsigned bits = type->getPrimitiveSizeInBits();
  Value* const whole = b_.CreateBitCast(value, b_.getIntNTy(bits));
  // The last lane of a segment, or its first, which is the bound upwards: the segment is the warp.
  const uint32_t bound = id == llvm::Intrinsic::nvvm_shfl_sync_up_i32 ? 0 : kWarp - 1;
  const auto word = [&](Value* one) -> Value* {
    return b_.CreateIntrinsic(
        id, {}, {b_.getInt32(~uint32_t{0}), one, b_.getInt32(lane), b_.getInt32(bound)});
  };
  Value* moved = nullptr;
  if (bits <= 32) {
    moved = b_.CreateTrunc(word(b_.CreateZExt(whole, b_.getInt32Ty())), whole->getType());
  } else {
    Value* const low = word(b_.CreateTrunc(whole, b_.getInt32Ty()));
    Value* const high = word(b_.CreateTrunc(b_.CreateLShr(whole, 32), b_.getInt32Ty()));
    moved = b_.CreateOr(b_.CreateZExt(low, whole->getType()),
                        b_.CreateShl(b_.CreateZExt(high, whole->getType()), 32));
  }
  return b_.CreateBitCast(moved, type);
}

std::vector<llvm::Value*> GpuKernelEmitter::shuffle(llvm::Intrinsic::ID id,
                                                    const std::vector<Value*>& values,
                                                    uint32_t lane) {
  std::vector<Value*> moved;
  for (Value* const each : values) moved.push_back(shuffle(id, each, lane));
  return moved;
}

// After the step of `distance`, thread t holds the combination of 2 * distance threads from t on,
// in order; the first thread of each warp finally holds that of the whole warp. (The last threads
// combine values that are not used; this is skipped if it might not terminate.)
std::vector<llvm::Value*> GpuKernelEmitter::within_warps(const Node& n,
                                                         std::vector<Value*> partials,
                                                         int64_t active) {
  for (uint32_t distance = 1; distance < kWarp; distance *= 2) {
    if (distance >= active) break;
    const std::vector<Value*> others =
        shuffle(llvm::Intrinsic::nvvm_shfl_sync_down_i32, partials, distance);
    const bool loops = may_loop(kernel_, n.blocks[1]);
    if (active % kWarp == 0 && !loops) {
      partials = combine_scalars(n, partials, others);
      continue;
    }
    Value* is_there = b_.CreateICmpULT(b_.CreateAdd(thread_, b_.getInt32(distance)),
                                       b_.getInt32(static_cast<uint32_t>(active)));
    if (loops) {
      Value* const lane = b_.CreateAnd(thread_, b_.getInt32(kWarp - 1));
      Value* const in_warp = b_.CreateICmpULT(lane, b_.getInt32(kWarp - distance));
      is_there = b_.CreateAnd(is_there, in_warp);
    }
    partials = combine_if(is_there, partials, n, partials, others);
  }
  return partials;
}

// Combines `init` and then the results of the warps in order; every thread computes it.
std::vector<llvm::Value*> GpuKernelEmitter::between_warps(const Node& n,
                                                          const std::vector<Value*>& partials,
                                                          int64_t warps) {
  std::vector<Value*> total;
  for (const RunValues& init : forms(n.operands)) total.push_back(init[0]);
  if (plan_.threads() == kWarp) {
    return combine_scalars(n, total, shuffle(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, partials, 0));
  }
  Value* const lane = b_.CreateAnd(thread_, b_.getInt32(kWarp - 1));
  codegen::emit_where(b_, b_.CreateICmpEQ(lane, b_.getInt32(0)), {}, [&] {
    store_partials(n, partials, b_.CreateLShr(thread_, b_.getInt32(5)));
    return std::vector<Value*>{};
  });
  barrier();
  touched_.reads.push_back(plan_.partials_place(n));
  return codegen::emit_loop(b_, b_.getInt32(0), b_.getInt32(static_cast<uint32_t>(warps)), 1, total,
                            [&](Value* warp, const std::vector<Value*>& carried) {
                              return combine_scalars(n, carried, load_partials(n, warp));
                            });
}

llvm::Value* GpuKernelEmitter::partial_place(const Node& n, size_t k, Value* warp) {
  const auto stride = static_cast<int64_t>(plan_.threads() / kWarp);
  const int64_t first =
      plan_.partials(n) + static_cast<int64_t>(k) * stride * BlockPlan::kPartialBytes;
  Value* const offset = b_.CreateMul(warp, b_.getInt32(BlockPlan::kPartialBytes));
  return b_.CreateGEP(b_.getInt8Ty(), shared_place(first), offset);
}

void GpuKernelEmitter::store_partials(const Node& n, const std::vector<Value*>& partials,
                                      Value* warp) {
  for (size_t k = 0; k < partials.size(); ++k) {
    const bool pred = is_pred(kernel_.value(n.results[k]).type);
    Value* const stored = pred ? b_.CreateZExt(partials[k], b_.getInt8Ty()) : partials[k];
    b_.CreateStore(stored, partial_place(n, k, warp));
  }
}

std::vector<llvm::Value*> GpuKernelEmitter::load_partials(const Node& n, Value* warp) {
  std::vector<Value*> partials;
  for (size_t k = 0; k < n.results.size(); ++k) {
    const ElementType type = kernel_.value(n.results[k]).type;
    Value* const loaded =
        b_.CreateLoad(codegen::memory_type_of(context_, type), partial_place(n, k, warp));
    partials.push_back(is_pred(type) ? b_.CreateTrunc(loaded, b_.getInt1Ty()) : loaded);
  }
  return partials;
}

}  // namespace tenon::gpu
