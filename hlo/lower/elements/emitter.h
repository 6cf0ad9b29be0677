// hlo/lower/elements/: element rules: one element of an op's result as operations of a kernel.
//
// ElementEmitter: elements of HLO values as operations of a kernel.
//
// An elementwise or index-mapping op, a reduction, a product: each is a rule that gives the element
// of its result at an index from elements of its operands. A kernel is a loop nest around the rules
// of the values that it stores (kernel_maker.h); a value that is bound to memory is loaded, any
// other one is emitted from its definition. So a fusion of any ops is lowered by the rules of the
// single ones.
//
// Complex numbers are pairs of reals: they never reach a kernel.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/kernel/ir/builder.h"
#include "hlo/ir/instruction.h"
#include "hlo/lower/value_key.h"

namespace tenon::hlo::lower {

using kernel::ValueId;
using kernel::Values;

/// A scalar in a kernel; `im` of complex ones alone.
struct Element {
  ValueId re = kernel::kNone;
  ValueId im = kernel::kNone;

  bool is_complex() const { return im != kernel::kNone; }
};
using Elements = std::vector<Element>;

/// How an array lies in a kernel's memory: its storage type (the part's for complex numbers, which
/// add a minor dimension of 2).
ElementType memory_type(const Type& type);
Dims memory_dims(const Type& type);

class ElementEmitter {
 public:
  explicit ElementEmitter(kernel::Builder& builder) : b(builder) {}

  /// Reads `value` from memory instead of emitting its definition. `row` is the beginning of the
  /// indices that are in this memory, which has the other dimensions: elsewhere it is emitted.
  void bind(Value value, kernel::MemoryId memory, Values row = {}) {
    memories_[key(value)] = {memory, std::move(row)};
  }
  /// The memory that `value` is read from, or kNone.
  kernel::MemoryId memory_of(Value value) const {
    const auto found = memories_.find(key(value));
    return found == memories_.end() ? kernel::kNone : found->second.memory;
  }
  /// Sets the results of `op` at `index`, for as long as the innermost open block is open.
  void provide(const Instruction& op, Values index, Elements elements);
  /// Whether elements of a reduction or contraction that was provided were emitted at some other
  /// index: computed again, in another order. A schedule that provides them then does not fit.
  bool strayed() const { return strayed_; }
  /// Lets the parameters of a fusion stand for its operands.
  void enter(const Instruction& fusion);
  /// `value`, or the operand that it stands for.
  Value resolve(Value value) const;
  /// A value of one element, which is at hand.
  void bind(Value value, const Element& element) { scalars_[key(value)] = element; }

  /// The element of `value` at `index`, one number a dimension, all within bounds.
  Element element(Value value, const Values& index);
  /// All results of `op` at `index`.
  Elements elements(const Instruction& op, const Values& index);
  /// The results of a region of rank-0 values for `arguments`.
  Elements call(const Computation& region, const Elements& arguments);

  Element load(kernel::MemoryId memory, const Type& type, const Values& index);
  void store(const Element& element, kernel::MemoryId memory, const Values& index);

  /// The first op that could not be emitted; its elements are then meaningless.
  const Status& status() const { return status_; }
  void fail(const Instruction& op, std::string why);

  // --- For the rules

  Element constant(ElementType type, double value);
  Element integer(ElementType type, int64_t value);
  /// `convert`, as StableHLO defines it.
  Element convert(const Element& x, ElementType from, ElementType to);
  Element select(ValueId condition, const Element& x, const Element& y);
  /// `then()` or `otherwise()`, of the parts that `type` has.
  Element if_else(ValueId condition, ElementType type, const std::function<Element()>& then,
                  const std::function<Element()>& otherwise);
  /// The same for several values.
  Elements if_else(ValueId condition, const std::vector<ElementType>& types,
                   const std::function<Elements()>& then,
                   const std::function<Elements()>& otherwise);
  /// Values as elements of these types, and back.
  static Values flat(const Elements& elements);
  static Elements unflat(const Values& values, const std::vector<ElementType>& types,
                         size_t first = 0);

  kernel::Builder& b;  // NOLINT: what every rule writes to

 private:
  using Key = ValueKey;
  struct KnownElements {
    Values index;
    kernel::BlockId block = 0;
    Elements elements;
  };
  struct StoredRow {
    kernel::MemoryId memory = kernel::kNone;
    Values row;
  };
  static Key key(Value value) { return {value.def, value.index}; }
  void normalise(const Dims& dims, Values& index) const;
  Elements remembered(Key what, const Values& index, const std::function<Elements()>& make);
  void check_limits(const Instruction& op);
  Elements emit(const Instruction& op, const Values& index);
  void forget(const Computation& region);
  void emit_in_order(const Computation& region);

  std::unordered_map<Key, StoredRow, ValueKeyHash> memories_;
  std::unordered_map<Key, Value, ValueKeyHash> aliases_;
  std::unordered_map<Key, Element, ValueKeyHash> scalars_;
  // By op, of ops whose results have shapes of their own by result too.
  std::unordered_map<Key, std::vector<KnownElements>, ValueKeyHash> known_;
  std::unordered_set<const Instruction*> provided_;
  bool strayed_ = false;
  int depth_ = 0;
  int64_t emitted_ = 0;
  Status status_;
};

struct ElementRule;  // hlo/lower/elements/rules.h

// --- For the rules and schedules

/// An elementwise op on numbers that are not complex.
Elements emit_elementwise(ElementEmitter& e, const ElementRule& rule, const Instruction& op,
                          const Elements& operands);
/// Where the slice of a dynamic_slice or dynamic_update_slice begins: the operands from `first` on,
/// clamped so that `sizes` fits into `dims`.
Values clamped_starts(ElementEmitter& e, const Instruction& op, size_t first, const Dims& dims,
                      const Dims& sizes);
/// A reduce or dot_general; `over_lanes` of the workgroup, outside any lanes loop.
Elements emit_reduce(ElementEmitter& e, const Instruction& op, const Values& index,
                     bool over_lanes);
Elements emit_dot(ElementEmitter& e, const Instruction& op, const Values& index, bool over_lanes);

/// Element types of a region's parameters, and of its results.
std::vector<ElementType> parameter_types(const Computation& region);
std::vector<ElementType> result_types(const Computation& region);

/// The product and the sum of complex or real elements.
Element multiply(ElementEmitter& e, const Element& x, const Element& y, ElementType type);
Element add(ElementEmitter& e, const Element& x, const Element& y, ElementType type);

/// Whether the emitter has a rule for `op` in its instance: elements of its results by index.
bool is_elemental(const Instruction& op);
/// Whether it has rules for all in the regions of `op`.
bool has_elemental_regions(const Instruction& op);

}  // namespace tenon::hlo::lower
