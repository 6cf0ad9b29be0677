// Rematerialization: kernels compute cheap values again instead of reading arrays of them.
//
//   %a, %b, %c = fusion(%x)              %t = fusion(%x)    // %a, %b, %c follow from %t and %x
//   %d = fusion(%g, %a, %b, %c)    ->    %d = fusion(%g, %t, %x)
//
// A minimum cut chooses what a kernel leaves for later ones, such as the forward pass of a network
// for the gradient: of the values between what a kernel must not compute again
// (its inputs, math functions, sums) and what the later kernels need, those of the fewest bytes are
// in memory. (He and Yu, "Transcending Runtime-Memory Tradeoffs in Checkpointing by being Fusion
// Aware", MLSys 2023.)
#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "hlo/lower/elements/rules.h"
#include "hlo/lower/lower.h"
#include "hlo/lower/lower_op.h"
#include "hlo/passes/fusion/groups.h"
#include "hlo/passes/fusion/minimum_cut.h"

namespace tenon::hlo::fusion {
namespace {

// The cost of a byte: for each group that reads it, if it is written for them, if it has to stay
// longer than otherwise, and if that may keep its memory from being written in place.
constexpr int64_t kRead = 2, kWritten = 3, kKept = 4, kCopied = 4;
constexpr size_t kMostUses = 64;  // of a value that is not kept

// Whether it only names the elements of an array in their order, each perhaps several times.
bool only_names(const Instruction& op) {
  if (!only_moves(op)) return false;
  return op.code() == OpCode::kBroadcastInDim || op.code() == OpCode::kIota ||
         lower::keeps_order(op);
}

// Whether it names some elements of an array: what reads it instead of their array jumps.
bool is_part(const Instruction& op) {
  if (op.code() == OpCode::kReshape) return is_part(*op.operand(0).def);
  return only_moves(op) && !only_names(op);
}

bool has_complex(const Instruction& op) {
  const std::vector<Value> operands = op.operands();
  const auto is = [](const Type& type) { return is_complex(type.element_type()); };
  return is(op.result_type()) ||
         std::ranges::any_of(operands, [&](const Value x) { return is(x.type()); });
}

// Whether an op takes few cycles for an element.
bool is_cheap(const Instruction& op) {
  if (!is_elementwise(op) || lower::is_math_function(op)) return false;
  switch (op.code()) {
    case OpCode::kDivide:
    case OpCode::kPower:
    case OpCode::kRemainder:
    case OpCode::kRsqrt:
    case OpCode::kSqrt:
      return false;
    case OpCode::kAdd:
    case OpCode::kComplex:
    case OpCode::kImag:
    case OpCode::kNegate:
    case OpCode::kReal:
    case OpCode::kSubtract:
      break;
    default:
      if (has_complex(op)) return false;
  }
  // Narrow floats are rounded after each op, and those of a byte take some to be widened.
  constexpr int kRoundedBits = 16;
  const auto is_narrower = [](const Type& type, int bits) {
    return is_float(type.element_type()) && bit_width(type.element_type()) < bits;
  };
  return !is_narrower(op.result_type(), kRoundedBits + 1) &&
         (op.code() != OpCode::kConvert || !is_narrower(op.operand_type(0), kRoundedBits));
}

int64_t bytes_of(Value value) { return value.type().shape().byte_size(); }

// The uses of values, each looked at once: an argument may have very many.
class KnownUses {
 public:
  struct Uses {
    bool updated = false;
    int64_t last = 0;  // The place of the last user.
  };
  explicit KnownUses(const FusionGroups& groups) : groups_(groups) {
    const Computation& computation = groups.computation();
    if (computation.owner() != nullptr) return;  // The next turn takes the memory over.
    for (size_t i = 0; i < computation.parameter_count(); ++i) {
      if (!is_donated(computation, i)) kept_.insert(computation.parameter(i).def);
    }
  }

  /// Whether it is an argument whose memory nothing takes over.
  bool is_kept_argument(Value value) const { return kept_.contains(value.def); }

  /// Those of a value that the computation itself has.
  const Uses& of(Value value) {
    const auto [known, added] = known_.try_emplace(value);
    if (!added) return known->second;
    known->second.updated = is_updated(value);
    for (const Use& use : value.def->uses()) {
      known->second.last = std::max(known->second.last, groups_.place(groups_.user(use)));
    }
    return known->second;
  }

  /// Before the op may be erased: another may come to have its address.
  void forget(Instruction& op) {
    for (uint32_t i = 0; i < op.result_count(); ++i) known_.erase(op.result(i));
  }

 private:
  const FusionGroups& groups_;
  std::unordered_map<Value, Uses, ValueHash> known_;
  std::unordered_set<const Instruction*> kept_;
};

// The values that later groups read of one group, and what they would be computed from.
class Rematerializer {
 public:
  Rematerializer(FusionGroups& groups, KnownUses& uses, const GroupPtr& group)
      : groups_(groups), uses_(uses), group_(group) {}

  void run() {
    find_needed();
    const int64_t least = groups_.cost().rematerialized_bytes;
    while (!needed_.empty() && saved_without(needed_) >= least) {
      find_cut();
      if (saved_without(needed_) - kept_bytes() < least) return;
      const std::set<const Instruction*> long_ones = too_long();
      if (long_ones.empty()) return compute_again();
      std::erase_if(needed_, [&](const auto& each) { return long_ones.contains(each.first); });
    }
  }

 private:
  // In the order of the computation.
  using Needed = std::vector<std::pair<Instruction*, std::vector<Use>>>;
  struct Reader {
    GroupPtr group;
    std::vector<Instruction*> results;  // that it computes again
  };

  std::vector<Instruction*> in_order(std::vector<Instruction*> ops) const {
    std::ranges::stable_sort(ops, {}, [&](const Instruction* op) { return groups_.place(op); });
    return ops;
  }

  // --- What is read

  bool is_in_group(const Instruction* op) const { return groups_.of(op) == group_; }

  // The group that reads `op` in the order of its elements and could compute it, or null.
  GroupPtr reader(const Instruction& op, const Use& use) const {
    if (use.user->parent() != &groups_.computation()) return nullptr;
    const GroupPtr group = groups_.of(use.user);
    const bool in_order = is_elementwise(*use.user) || is_reduction(*use.user);
    if (group == nullptr || group == group_ || !in_order) return nullptr;
    if (group->is_scatter || group->is_concatenation || group->has_taken) return nullptr;
    // Tiles of a transposed array, and of a product, are stored from registers.
    const bool by_tiles =
        group->product != nullptr || std::ranges::any_of(group->ops, [](const Instruction* each) {
          return each->code() == OpCode::kTranspose;
        });
    const bool has_domain = op.result_type().dims() == group->domain;
    return by_tiles || !has_domain ? nullptr : group;
  }

  bool is_read_outside(const Instruction& op) const {
    return std::ranges::any_of(op.uses(),
                               [&](const Use& use) { return !is_in_group(groups_.user(use)); });
  }

  // Results that only groups read which could compute them.
  void find_needed() {
    if (group_->is_scatter || group_->is_concatenation || group_->is_closed) return;
    for (Instruction* op : in_order(group_->ops)) {
      if (!can_repeat(*op) || op->result_type().dims() != group_->domain) continue;
      std::vector<Use> outside;
      std::ranges::copy_if(op->uses(), std::back_inserter(outside),
                           [&](const Use& use) { return !is_in_group(groups_.user(use)); });
      const bool by_groups =
          std::ranges::all_of(outside, [&](const Use& use) { return reader(*op, use) != nullptr; });
      if (by_groups && !outside.empty() && outside.size() <= kMostUses)
        needed_.emplace_back(op, std::move(outside));
    }
    std::set<GroupPtr> readers;
    for (const auto& [op, uses] : needed_) {
      for (const Use& use : uses) readers.insert(groups_.of(use.user));
    }
    for (const GroupPtr& each : readers) last_ = std::max(last_, end_of(*each));
    reads_ = kRead * std::ssize(readers);
  }

  int64_t end_of(const Group& group) const {
    int64_t last = 0;
    for (const Instruction* op : group.ops) last = std::max(last, groups_.place(op));
    return last;
  }

  static int64_t saved_without(const Needed& needed) {
    int64_t bytes = 0;
    for (const auto& [op, uses] : needed) bytes += bytes_of(op->result());
    return bytes;
  }

  // --- What it follows from

  bool can_repeat(const Instruction& op) const {
    if (!is_in_group(&op) || op.result_count() != 1 || op.region_count() != 0) return false;
    return only_names(op) || (is_cheap(op) && op.result_type().dims() == group_->domain);
  }

  // Whether an array is in memory until the last reader has run in any case.
  bool is_in_memory(Value value) const {
    if (is_in_group(value.def)) {
      const auto is_it = [&](const auto& each) { return each.first == value.def; };
      return std::ranges::none_of(needed_, is_it) && is_read_outside(*value.def);
    }
    if (value.def->parent() != &groups_.computation()) return true;  // A loop reads it each time.
    if (value.def->code() == OpCode::kReshape && is_in_memory(value.def->operand(0))) return true;
    return uses_.is_kept_argument(value) || uses_.of(value).last > last_;
  }

  int64_t weight_of(Value value) const {
    if (!value.type().is_tensor() || is_part(*value.def)) return MinimumCut::kNever;
    const bool is_local = value.def->parent() == &groups_.computation();
    if (is_local ? uses_.of(value).updated : is_updated(value)) return MinimumCut::kNever;
    // A kernel's results have its domain, or a number for each of its rows.
    if (is_in_group(value.def) && !group_->has(value.type().dims())) return MinimumCut::kNever;
    const int64_t bytes = std::max<int64_t>(bytes_of(value), 1);
    if (is_in_memory(value)) return reads_ * bytes;
    if (is_in_group(value.def)) return (reads_ + kWritten) * bytes;
    const bool is_parameter = value.def->code() == OpCode::kParameter;
    return (reads_ + kKept + (is_parameter ? kCopied : 0)) * bytes;
  }

  static bool is_free(Value value) { return value.def->code() == OpCode::kConstant; }

  void find_cut() {
    MinimumCut graph;
    std::unordered_map<Value, size_t, ValueHash> nodes;
    std::vector<Value> values;
    const auto node_of = [&](Value value) {
      const auto [known, added] = nodes.try_emplace(value, values.size());
      if (added) {
        graph.add(weight_of(value));
        values.push_back(value);
      }
      return known->second;
    };
    for (const auto& [op, uses] : needed_) graph.add_sink(node_of(op->result()));
    for (size_t next = 0; next < values.size(); ++next) {
      const Value value = values[next];
      if (!can_repeat(*value.def)) {
        graph.add_source(next);
        continue;
      }
      for (const Value operand : value.def->operands()) {
        if (!is_free(operand)) graph.add_edge(node_of(operand), next);
      }
    }
    cut_.clear();
    for (const size_t node : graph.solve()) cut_.insert(values[node]);
  }

  // The bytes of those of the cut that would not be in memory otherwise.
  int64_t kept_bytes() const {
    int64_t bytes = 0;
    for (const Value value : cut_) {
      if (!is_in_memory(value)) bytes += bytes_of(value);
    }
    return bytes;
  }

  // --- What computes it again

  // The groups that read values that are not in the cut.
  std::vector<Reader> readers() const {
    std::vector<Reader> found;
    for (const auto& [op, uses] : needed_) {
      if (cut_.contains(op->result())) continue;
      for (const Use& use : uses) {
        const GroupPtr group = groups_.of(use.user);
        auto reader = std::ranges::find(found, group, &Reader::group);
        if (reader == found.end()) reader = found.insert(found.end(), Reader{group, {}});
        if (std::ranges::find(reader->results, op) == reader->results.end()) {
          reader->results.push_back(op);
        }
      }
    }
    return found;
  }

  // The ops that make `results` from the cut, in the order of the computation.
  std::vector<Instruction*> ops_of(const std::vector<Instruction*>& results) const {
    std::set<const Instruction*> seen(results.begin(), results.end());
    std::vector<Instruction*> rest = results;
    std::vector<Instruction*> ops;
    while (!rest.empty()) {
      Instruction* const op = rest.back();
      rest.pop_back();
      ops.push_back(op);
      for (const Value operand : op->operands()) {
        const bool ends = is_free(operand) || cut_.contains(operand);
        if (!ends && seen.insert(operand.def).second) rest.push_back(operand.def);
      }
    }
    return in_order(std::move(ops));
  }

  // For each reader that would become too long the result that takes most ops.
  std::set<const Instruction*> too_long() const {
    std::set<const Instruction*> found;
    for (const Reader& reader : readers()) {
      Group again;
      again.ops = ops_of(reader.results);
      Group with = *reader.group;
      with.ops.insert(with.ops.end(), again.ops.begin(), again.ops.end());
      const int64_t most = groups_.cost().rematerialized_ops * std::ssize(reader.results);
      if (again.operations() <= most && groups_.is_small(with)) continue;
      found.insert(*std::ranges::max_element(reader.results, {},
                                             [&](Instruction* op) { return ops_of({op}).size(); }));
    }
    return found;
  }

  void compute_again() {
    for (const Reader& reader : readers()) {
      Cloner cloner;
      for (Instruction* op : ops_of(reader.results)) compute_again(*op, reader, cloner);
    }
    for (Instruction* op : group_->ops) uses_.forget(*op);
    groups_.drop_unused(group_);
  }

  void compute_again(Instruction& op, const Reader& reader, Cloner& cloner) {
    Instruction* const copy = groups_.computation().insert(cloner.clone(op), op.next());
    groups_.set_place(copy, op);
    groups_.add(reader.group, copy);
    if (std::ranges::find(reader.results, &op) == reader.results.end()) return;
    for (const Use& use : std::vector<Use>(op.uses())) {
      // The uses by copies are of other groups, or of results that the same group computes again.
      if (groups_.of(use.user) == reader.group) use.user->set_operand(use.operand, copy->result());
    }
  }

  FusionGroups& groups_;
  KnownUses& uses_;
  GroupPtr group_;
  Needed needed_;
  int64_t last_ = 0;   // The place of the last op of the readers.
  int64_t reads_ = 0;  // The cost of a byte that they read.
  std::unordered_set<Value, ValueHash> cut_;
};

}  // namespace

void rematerialize(FusionGroups& groups) {
  // Each group behind those that read it, which then read what it reads.
  std::vector<GroupPtr> order;
  std::set<GroupPtr> known;
  for (const Instruction& op : groups.computation()) {
    const GroupPtr group = groups.of(&op);
    if (group != nullptr && known.insert(group).second) order.push_back(group);
  }
  KnownUses uses(groups);
  for (auto group = order.rbegin(); group != order.rend(); ++group) {
    Rematerializer(groups, uses, *group).run();
  }
}

}  // namespace tenon::hlo::fusion
