// hlo/lower/elements/: element rules: one element of an op's result as operations of a kernel.
//
// ElementEmitter: emits elements of HLO values as operations of a kernel.
//
// Each elementwise or index-mapping op, reduction and product has a rule that computes the element
// of its result at an index from elements of its operands. A kernel is a loop nest around the rules
// of the values that it stores (kernel_maker.h). A value that is bound to memory is loaded; any
// other value is emitted from its definition. The rules of single ops therefore lower any fusion.
//
// Complex numbers are pairs of reals: they never reach a kernel.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/kernel/ir/builder.h"
#include "hlo/ir/instruction.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/value_key.h"

namespace tenon::hlo::lower {

using kernel::ValueId;
using kernel::Values;

/// A scalar in a kernel; `im` is only set for complex numbers.
struct Element {
  ValueId re = kernel::kNone;
  ValueId im = kernel::kNone;

  bool is_complex() const { return im != kernel::kNone; }
};
using Elements = std::vector<Element>;

/// How an array is stored in a kernel's memory: its storage type (for complex numbers, that of the
/// parts, which add a minor dimension of 2).
ElementType memory_type(const Type& type);
Dims memory_dims(const Type& type);

class ElementEmitter {
 public:
  explicit ElementEmitter(kernel::Builder& builder) : b(builder) {}

  /// Reads `value` from memory instead of emitting its definition. The memory holds only the
  /// elements whose index begins with `row`, and has the remaining dimensions; other elements are
  /// emitted.
  void bind(Value value, kernel::MemoryId memory, Values row = {}) {
    memories_[key(value)] = {memory, std::move(row)};
  }
  /// The memory from which `value` is read, or kNone.
  kernel::MemoryId memory_of(Value value) const {
    const auto found = memories_.find(key(value));
    return found == memories_.end() ? kernel::kNone : found->second.memory;
  }
  /// Sets the results of `op` at `index`, while the innermost open block is open.
  void provide(const Instruction& op, Values index, Elements elements);
  /// Sets the element of `value` at `index`, while the innermost open block is open, also if other
  /// elements of `value` are read from memory.
  void provide(Value value, Values index, const Element& element);
  /// Whether elements of a provided reduction or contraction were emitted at some other index, and
  /// so are computed again, in another order. A schedule that provides them then does not fit.
  bool strayed() const { return strayed_; }
  /// Maps the parameters of a fusion to its operands.
  void enter(const Instruction& fusion);
  /// `value`, or, for a parameter of a fusion, the operand.
  Value resolve(Value value) const;
  /// Binds a value of one element to a scalar.
  void bind(Value value, const Element& element) { scalars_[key(value)] = element; }

  /// The element of `value` at `index`, one number per dimension, all within bounds.
  Element element(Value value, const Values& index);
  /// All results of `op` at `index`.
  Elements elements(const Instruction& op, const Values& index);
  /// The results of a region of rank-0 values for `arguments`.
  Elements call(const Computation& region, const Elements& arguments);

  Element load(kernel::MemoryId memory, const Type& type, const Values& index);
  void store(const Element& element, kernel::MemoryId memory, const Values& index);

  /// The error of the first op that could not be emitted; the elements are then meaningless.
  const Status& status() const { return status_; }
  void fail(const Instruction& op, std::string why);

  // --- For element rules

  Element constant(ElementType type, double value);
  Element integer(ElementType type, int64_t value);
  /// `convert`, as StableHLO defines it.
  Element convert(const Element& x, ElementType from, ElementType to);
  Element select(ValueId condition, const Element& x, const Element& y);
  /// `then()` or `otherwise()`, with the parts that `type` has.
  Element if_else(ValueId condition, ElementType type, const std::function<Element()>& then,
                  const std::function<Element()>& otherwise);
  /// The same for several values.
  Elements if_else(ValueId condition, const std::vector<ElementType>& types,
                   const std::function<Elements()>& then,
                   const std::function<Elements()>& otherwise);
  /// Converts between elements of these types and a flat list of values.
  static Values flat(const Elements& elements);
  static Elements unflat(const Values& values, const std::vector<ElementType>& types,
                         size_t first = 0);

  kernel::Builder& b;  // NOLINT: what every rule writes to

 private:
  using Key = ValueKey;
  struct KnownElements {
    kernel::BlockId block = 0;
    Elements elements;
  };
  /// A window's op is emitted at thousands of indices.
  using KnownAt = std::map<Values, std::vector<KnownElements>>;
  struct StoredRow {
    kernel::MemoryId memory = kernel::kNone;
    Values row;
  };
  static Key key(Value value) { return {value.def, value.index}; }
  void normalise(const Dims& dims, Values& index) const;
  const Elements* known_at(Key what, const Values& index) const;
  Elements remembered(Key what, const Values& index, const std::function<Elements()>& make);
  void check_limits(const Instruction& op);
  Elements emit(const Instruction& op, const Values& index);
  void forget(const Computation& region);
  void emit_in_order(const Computation& region);

  std::unordered_map<Key, StoredRow, ValueKeyHash> memories_;
  std::unordered_map<Key, Value, ValueKeyHash> aliases_;
  std::unordered_map<Key, Element, ValueKeyHash> scalars_;
  // By op; if its results have different shapes, also by result.
  std::unordered_map<Key, KnownAt, ValueKeyHash> known_;
  std::unordered_set<const Instruction*> provided_;
  std::unordered_set<Key, ValueKeyHash> provided_values_;
  bool strayed_ = false;
  int depth_ = 0;
  int64_t emitted_ = 0;
  Status status_;
};

struct ElementRule;  // hlo/lower/elements/rules.h

// --- For element rules and schedules

/// An elementwise op on non-complex numbers.
Elements emit_elementwise(ElementEmitter& e, const ElementRule& rule, const Instruction& op,
                          const Elements& operands);
/// The start of the slice of a dynamic_slice or dynamic_update_slice: the operands from `first` on,
/// clamped so that `sizes` fits into `dims`.
Values clamped_starts(ElementEmitter& e, const Instruction& op, size_t first, const Dims& dims,
                      const Dims& sizes);
/// A reduce or dot_general; `over_lanes` of the workgroup, only outside lanes loops.
Elements emit_reduce(ElementEmitter& e, const Instruction& op, const Values& index,
                     bool over_lanes);
Elements emit_dot(ElementEmitter& e, const Instruction& op, const Values& index, bool over_lanes);

/// Element types of a region's parameters, and of its results.
std::vector<ElementType> parameter_types(const Computation& region);
std::vector<ElementType> result_types(const Computation& region);

/// The product and the sum of complex or real elements.
Element multiply(ElementEmitter& e, const Element& x, const Element& y, ElementType type);
Element add(ElementEmitter& e, const Element& x, const Element& y, ElementType type);

/// Whether the emitter has a rule for this instance of `op`: elements of its results by index.
bool is_elemental(const Instruction& op);
/// Whether it has rules for all ops in the regions of `op`.
bool has_elemental_regions(const Instruction& op);

}  // namespace tenon::hlo::lower
