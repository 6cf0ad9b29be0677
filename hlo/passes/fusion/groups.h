// The groups of instructions that become fusions, while the pass fusion chooses them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "hlo/ir/instruction.h"
#include "hlo/lower/cost_model.h"

namespace tenon::hlo::fusion {

/// A set of instructions of one computation that become one fusion.
struct Group {
  std::vector<Instruction*> ops;  ///< In no order.
  Dims domain;                    ///< The dimensions of its elements.
  Dims rows;                      ///< The dimensions of the rows of a row fusion.
  /// Has a reduction over the minor dimensions; its other values have one number per row.
  bool is_row_fusion = false;
  /// Ends in a reduction other than over rows: no op can follow it in the group.
  bool is_closed = false;
  bool is_scatter = false;
  bool is_concatenation = false;
  /// Its gathers or scatters have taken what computes their indices: it joins no other group.
  bool has_taken = false;
  /// The convolution whose results the others compute with, as they leave its tiles.
  Instruction* product = nullptr;

  bool contains(const Instruction* op) const;
  /// Whether an array of these dimensions fits: it has the domain, or one number per row.
  bool has(const Dims& dims) const;
  /// The number of arrays that the fusion will read.
  int64_t input_count() const;
  /// The number of ops, as far as they make a kernel long: without those that repeat elements,
  /// broadcasts and iotas, and with a quarter of the integer ones, which take one instruction and
  /// few registers (the 20 rounds of a random number are one kernel).
  int64_t operations() const;
};
using GroupPtr = std::shared_ptr<Group>;

/// The dimensions of more than one element.
Dims without_ones(const Dims& dims);

/// The groups of one computation.
class FusionGroups {
 public:
  FusionGroups(Computation& computation, const lower::CostModel& cost);

  Computation& computation() const { return computation_; }
  const lower::CostModel& cost() const { return cost_; }

  /// The group of an instruction; null: it has none.
  GroupPtr of(const Instruction* op) const;
  /// Makes `group` the group of all its instructions.
  void set(const GroupPtr& group);
  /// Adds `op`, all readers of which are in the group, so that no other instruction is between
  /// them.
  void add(const GroupPtr& group, Instruction* op);

  /// The number of an instruction in the order of the computation. One that a pass has inserted
  /// has the number of the one that it stands for.
  int64_t place(const Instruction* op) const { return places_.at(op); }
  void set_place(const Instruction* inserted, const Instruction& like);
  /// Removes the ops of the group that nothing uses from it and from the computation.
  void drop_unused(const GroupPtr& group);

  /// The instruction of the computation that is the user or contains it.
  const Instruction* user(const Use& use) const;
  /// Whether the instructions are within the limits on the size of a fusion.
  bool is_small(const Group& group) const;

 private:
  Computation& computation_;
  const lower::CostModel& cost_;
  std::map<const Instruction*, GroupPtr> groups_;
  std::map<const Instruction*, int64_t> places_;
};

// --- What chooses them, in this order (fusion.cpp)

/// Elementwise ops, reductions, gathers and scatters join the groups of their operands
/// (join_operands.cpp).
void join_operands(FusionGroups& groups);
/// Ops that only move elements, and transposes, join their readers (take_movers.cpp).
void take_movers(FusionGroups& groups);
/// Gathers, scatters and concatenations take the ops that compute what they read
/// (take_producers.cpp).
void take_producers(FusionGroups& groups);
/// Groups compute cheap values again, which they read of other groups (rematerialize.cpp).
void rematerialize(FusionGroups& groups);

// --- Ops as fusion sees them

/// Fusions contain only arrays of known sizes, as lowering does.
bool has_known_sizes(const Instruction& op);
bool is_elementwise(const Instruction& op);
/// Whether each element of the result is an element of an operand, which is almost free to compute
/// again. (In a concatenation of many arrays it takes long to find.)
bool only_moves(const Instruction& op);
bool is_reduction(const Instruction& op);
bool is_gather(const Instruction& op);
/// A scatter whose indices and updates a kernel computes as it reads them. One of few updates
/// belongs to loops that change an array in parts (update_chain in hlo/lower/uses.h).
bool is_long_scatter(const Instruction& op, const lower::CostModel& cost);
/// A convolution by tiles, which stores what follows it without writing and reading its results.
bool is_product(const Instruction& op, const lower::CostModel& cost);
/// Whether a use of `array` is an update, which can be in place.
bool is_update_of(const Use& use, Value array);
/// Whether it is also updated: what reads it must do so first, so that the update can be in place.
bool is_updated(Value array);
/// Whether a use is of an array that elements are read from or written to at indices.
bool is_indexed(const Use& use);

}  // namespace tenon::hlo::fusion
