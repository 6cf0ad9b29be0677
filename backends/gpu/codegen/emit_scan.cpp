// Scans. A serial one is a loop; one over lanes is shared by the threads of a block.
//
// In each turn a thread scans a few adjacent elements by itself, the threads of a warp scan what
// these give by shuffles (Hillis and Steele, "Data parallel algorithms", CACM 29(12), 1986), and
// the warps' totals go through shared memory. The order of elements is kept.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "backends/gpu/codegen/emitter.h"
#include "backends/llvm/loops.h"
#include "core/kernel/ir/visitor.h"

namespace tenon::gpu {

using kernel::Node;

class GpuKernelEmitter::LaneScan {
 public:
  using Values = std::vector<Value*>;

  LaneScan(GpuKernelEmitter& emitter, const Node& n)
      : e_(emitter), b_(emitter.b_), n_(n), count_(n.extents[0]) {
    const auto threads = static_cast<int64_t>(e_.plan_.threads());
    constexpr int64_t kMostOwn = 4;
    own_ = std::clamp<int64_t>((count_ + threads - 1) / threads, 1, kMostOwn);
    a_turn_ = threads * own_;
    turns_ = (count_ + a_turn_ - 1) / a_turn_;
    type_ = turns_ * a_turn_ < INT32_MAX ? b_.getInt32Ty() : b_.getInt64Ty();
    loops_ = any_node(e_.kernel_, n.blocks[1], [](const Node& node) {
      return kernel::is<kernel::OnWhile, kernel::OnFor>(node.op);
    });
    lane_ = b_.CreateAnd(e_.thread_, b_.getInt32(kWarp - 1));
    warp_ = b_.CreateLShr(e_.thread_, b_.getInt32(5));
  }

  /// The last prefix.
  Values run() {
    Values inits;
    for (const RunValues& init : e_.forms(n_.operands)) inits.push_back(init[0]);
    const auto turn = [&](Value* number_of_turn, const Values& before) {
      start_ = b_.CreateMul(number_of_turn, number(a_turn_));
      return scan_turn(before);
    };
    if (turns_ == 1) return turn(number(0), inits);
    return codegen::emit_loop(b_, number(0), number(turns_), 1, inits,
                              [&](Value* i, const Values& before) {
                                Values last = turn(i, before);
                                e_.barrier();  // The next turn stores other totals.
                                return last;
                              });
  }

 private:
  Values scan_turn(const Values& before) {
    Value* const first =
        b_.CreateAdd(start_, b_.CreateMul(b_.CreateZExt(e_.thread_, type_), number(own_)));
    const std::vector<Values> mine = own_prefixes(first);
    const Values scanned = within_warp(mine.back(), is_there(first));
    Value* const active = active_threads();
    store_totals(scanned, active);
    e_.barrier();
    auto [prefix, last] = prefix_of_warp(before, active);
    Value* const later = b_.CreateICmpNE(lane_, b_.getInt32(0));
    const Values previous = e_.shuffle(llvm::Intrinsic::nvvm_shfl_sync_up_i32, scanned, 1);
    prefix = e_.combine_if(guarded(later, is_there(first)), prefix, n_, prefix, previous);
    for (int64_t i = 0; i < own_; ++i) {
      Value* const place = b_.CreateAdd(first, number(i));
      where(is_there(place), {}, [&] {
        each(place, e_.combine_scalars(n_, prefix, mine[static_cast<size_t>(i)]));
        return Values{};
      });
    }
    return last;
  }

  // The prefixes of a thread's own elements. Those behind the last element repeat the one before.
  std::vector<Values> own_prefixes(Value* first) {
    std::vector<Values> prefixes;
    for (int64_t i = 0; i < own_; ++i) {
      Value* const place = b_.CreateAdd(first, number(i));
      const Values before = i == 0 ? nothing() : prefixes.back();
      prefixes.push_back(where(is_there(place), before, [&] {
        e_.set_indices(e_.kernel_.block(n_.blocks[0]).arguments, n_.extents, place);
        Values leaf;
        for (const RunValues& value : e_.block(n_.blocks[0])) leaf.push_back(value[0]);
        return i == 0 ? leaf : e_.combine_scalars(n_, before, leaf);
      }));
    }
    return prefixes;
  }

  // After the step of `distance`, a thread has the combination of 2 * distance threads up to it.
  Values within_warp(Values values, Value* has) {
    for (uint32_t distance = 1; distance < kWarp; distance *= 2) {
      const Values others = e_.shuffle(llvm::Intrinsic::nvvm_shfl_sync_up_i32, values, distance);
      Value* const later = b_.CreateICmpUGE(lane_, b_.getInt32(distance));
      values = e_.combine_if(guarded(later, has), values, n_, others, values);
    }
    return values;
  }

  // Threads that have an element in this turn: the first ones.
  Value* active_threads() {
    const auto threads = static_cast<int64_t>(e_.plan_.threads());
    if (count_ % a_turn_ == 0) return b_.getInt32(static_cast<uint32_t>(threads));
    Value* const left = b_.CreateSub(number(count_ + own_ - 1), start_);
    Value* const some = b_.CreateUDiv(left, number(own_));
    Value* const all = number(threads);
    return b_.CreateTrunc(b_.CreateSelect(b_.CreateICmpULT(some, all), some, all), b_.getInt32Ty());
  }

  void store_totals(const Values& scanned, Value* active) {
    Value* const ends_warp = b_.CreateICmpEQ(lane_, b_.getInt32(kWarp - 1));
    Value* const ends = b_.CreateICmpEQ(b_.CreateAdd(e_.thread_, b_.getInt32(1)), active);
    Value* const has = b_.CreateICmpULT(e_.thread_, active);
    codegen::emit_where(b_, b_.CreateAnd(has, b_.CreateOr(ends_warp, ends)), {}, [&] {
      e_.store_partials(n_, scanned, warp_);
      return Values{};
    });
  }

  // The prefix before this thread's warp, and that of the whole turn.
  std::pair<Values, Values> prefix_of_warp(const Values& before, Value* active) {
    Value* const warps =
        b_.CreateLShr(b_.CreateAdd(active, b_.getInt32(kWarp - 1)), b_.getInt32(5));
    const size_t count = before.size();
    Values carried = before;
    carried.insert(carried.end(), before.begin(), before.end());
    const Values found = codegen::emit_loop(
        b_, b_.getInt32(0), warps, 1, carried, [&](Value* w, const Values& both) {
          const Values running(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(count));
          Values next = e_.combine_scalars(n_, running, e_.load_partials(n_, w));
          Value* const is_mine = b_.CreateICmpEQ(w, warp_);
          for (size_t k = 0; k < count; ++k) {
            next.push_back(b_.CreateSelect(is_mine, running[k], both[count + k]));
          }
          return next;
        });
    const auto middle = found.begin() + static_cast<std::ptrdiff_t>(count);
    return {Values(middle, found.end()), Values(found.begin(), middle)};
  }

  void each(Value* place, const Values& prefix) {
    const Ids& arguments = e_.kernel_.block(n_.blocks[2]).arguments;
    e_.values_[arguments[0]] = e_.index_from(place);
    for (size_t k = 0; k < prefix.size(); ++k) e_.values_[arguments[k + 1]] = {prefix[k]};
    e_.block(n_.blocks[2]);
  }

  // Null: every place holds an element.
  Value* is_there(Value* place) {
    if (count_ % a_turn_ == 0) return nullptr;
    return b_.CreateICmpULT(place, number(count_));
  }
  // Values behind the last element are not combined if that might not terminate.
  Value* guarded(Value* condition, Value* has) {
    return loops_ && has != nullptr ? b_.CreateAnd(condition, has) : condition;
  }
  Values where(Value* condition, const Values& otherwise, const std::function<Values()>& body) {
    return condition == nullptr ? body() : codegen::emit_where(b_, condition, otherwise, body);
  }
  Values nothing() {
    Values none;
    for (const kernel::ValueId result : n_.results) {
      none.push_back(llvm::Constant::getNullValue(
          codegen::type_of(e_.context_, e_.kernel_.value(result).type)));
    }
    return none;
  }
  Value* number(int64_t value) { return e_.number(type_, value); }

  GpuKernelEmitter& e_;
  llvm::IRBuilder<>& b_;
  const Node& n_;
  const int64_t count_;
  int64_t own_ = 1;     // Elements of a thread in a turn.
  int64_t a_turn_ = 1;  // Elements of all threads.
  int64_t turns_ = 1;
  bool loops_ = false;  // Whether combining might not terminate.
  llvm::Type* type_ = nullptr;
  Value* lane_ = nullptr;
  Value* warp_ = nullptr;
  Value* start_ = nullptr;  // The first element of the turn.
};

void GpuKernelEmitter::scan(const Node& n) {
  if (n.over_lanes && outside() && n.extents[0] > 0) {
    touch(plan_.touched(n));
    in_lanes_ = true;
    Many last;
    for (Value* const each : LaneScan(*this, n).run()) last.push_back({each});
    in_lanes_ = false;
    // Barriers order what came before them.
    touched_.add(plan_.touched(n));
    return set(n.results, last);
  }
  const AccessSummary before = touched_;
  if (outside()) touched_.add(plan_.touched(n));
  const Ids& each = kernel_.block(n.blocks[2]).arguments;
  const kernel::ValueId of_leaf = kernel_.block(n.blocks[0]).arguments[0];
  llvm::IntegerType* const type = counter_type(n.extents[0]);
  const codegen::LlvmValues last = codegen::emit_loop(
      b_, number(type, 0), number(type, n.extents[0]), 1, flatten(n.results, forms(n.operands)),
      [&](Value* i, const codegen::LlvmValues& carried) {
        values_[of_leaf] = values_[each[0]] = index_from(i);
        const Many prefix = combine(n, unflatten(n.results, carried), block(n.blocks[0]));
        codegen::LlvmValues next = flatten(n.results, prefix);
        set(each, unflatten(n.results, next), 1);
        block(n.blocks[2]);
        return next;
      });
  set(n.results, unflatten(n.results, last));
  touched_.add(before);
}

}  // namespace tenon::gpu
