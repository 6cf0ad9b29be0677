#include "hlo/passes/row_blocks/region.h"

#include <algorithm>

#include "hlo/lower/lower_op.h"

namespace tenon::hlo {
namespace {

constexpr size_t kMostOps = 160;     // In a region.
constexpr size_t kMostBetween = 24;  // Ops on small arrays between two results of a region.
constexpr int kMostFreeOps = 12;     // That are computed again rather than read.

class RegionFinder {
 public:
  RegionFinder(Instruction& product, int64_t dimension)
      : computation_(*product.parent()),
        rows_(product.result_type().dims()[static_cast<size_t>(dimension)]),
        large_(element_count(product.result_type().dims()) / 2) {
    const auto division = division_by_result(product, dimension);
    if (division) add(product, *division);
  }

  std::optional<RowRegion> run() {
    if (divisions_.empty()) return {};
    do {
      if (!close()) return {};
      find_levels();
    } while (absorb_between());
    return region();
  }

 private:
  static constexpr int kIndependent = -1;

  bool is_member(const Instruction& op) const { return divisions_.contains(&op); }
  bool is_large(const Type& type) const {
    return type.is_tensor() && type.shape().is_static() && element_count(type.dims()) >= large_;
  }

  void add(Instruction& op, RowDivision division) {
    divisions_.emplace(&op, std::move(division));
    queue_.push_back(&op);
  }

  // Adds what large arrays of members are made of and go into. False if that cannot be divided.
  bool close() {
    while (!queue_.empty()) {
      Instruction& op = *queue_.back();
      queue_.pop_back();
      if (divisions_.size() > kMostOps || !add_users(op) || !add_sources(op)) return false;
    }
    return true;
  }

  bool add_users(Instruction& op) {
    const int64_t dimension = divisions_.at(&op).result;
    if (free_.contains(&op) || dimension == RowDivision::kNone || !is_large(op.result_type()))
      return true;
    return std::ranges::all_of(op.uses(), [&](const Use& use) { return add_user(use, dimension); });
  }

  bool add_user(const Use& use, int64_t dimension) {
    Instruction& user = *use.user;
    if (user.parent() != &computation_) return false;
    const auto found = divisions_.find(&user);
    if (found != divisions_.end()) return found->second.operands[use.operand] == dimension;
    for (const RowDivision& each : divisions_of(user)) {
      if (each.operands[use.operand] == dimension && agrees(user, each)) {
        add(user, each);
        return true;
      }
    }
    return false;
  }

  // Whether those operands that members compute are divided as they are.
  bool agrees(const Instruction& op, const RowDivision& division) const {
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const auto source = divisions_.find(op.operand(i).def);
      if (source == divisions_.end() || division.operands[i] == RowDivision::kNone) continue;
      if (source->second.result != division.operands[i]) return false;
    }
    return true;
  }

  bool add_sources(Instruction& op) {
    const std::vector<int64_t> dimensions = divisions_.at(&op).operands;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      Instruction& source = *op.operand(i).def;
      if (dimensions[i] == RowDivision::kNone || source.parent() != &computation_) continue;
      const auto found = divisions_.find(&source);
      if (found != divisions_.end()) {
        if (!found->second.is_combined() && found->second.result != dimensions[i]) return false;
        continue;
      }
      if (!is_large(source.result_type(op.operand(i).index))) continue;
      int ops = 0;
      const bool is_free = is_free_of_arrays(source, ops);
      const auto division = division_by_result(source, dimensions[i]);
      if (!division ||
          (!is_free && !is_float(source.result_type(op.operand(i).index).element_type())))
        continue;
      if (is_free) free_.insert(&source);
      add(source, *division);
    }
    return true;
  }

  // Whether an op is made of few elementwise ops, of constants and repeated small arrays: a mask.
  bool is_free_of_arrays(const Instruction& op, int& ops) const {
    if (op.code() == OpCode::kConstant) return lower::is_inline_constant(op);
    if (op.code() == OpCode::kParameter || ++ops > kMostFreeOps) return false;
    const bool is_elementwise = op.info().fusion == FusionKind::kElementwise;
    const bool repeats = op.code() == OpCode::kBroadcastInDim;
    if (op.code() != OpCode::kIota && !is_elementwise && !repeats) return false;
    return op.parent() == &computation_ && std::ranges::all_of(op.operands(), [&](Value operand) {
             return !is_large(operand.type()) || is_free_of_arrays(*operand.def, ops);
           });
  }

  // --- Levels: what depends on no member is independent; a member of level 1 needs, as a whole,
  // something that depends on members of level 0.

  int level_of(Value value) const {
    const auto found = levels_.find(value.def);
    return found == levels_.end() ? kIndependent : found->second;
  }

  int level_of_member(const Instruction& op) const {
    const RowDivision& division = divisions_.at(&op);
    int level = free_.contains(&op) ? kIndependent : 0;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const int of_operand = level_of(op.operand(i));
      if (of_operand == kIndependent) continue;
      const auto source = divisions_.find(op.operand(i).def);
      const bool is_block = source != divisions_.end() && !source->second.is_combined() &&
                            division.operands[i] != RowDivision::kNone;
      level = std::max(level, is_block ? of_operand : of_operand + 1);
    }
    return level;
  }

  void find_levels() {
    levels_.clear();
    size_t members = 0;
    for (Instruction& op : computation_) {
      int level = kIndependent;
      if (is_member(op)) {
        level = level_of_member(op);
        if (++members == divisions_.size()) last_ = &op;
      } else {
        for (const Value operand : all_operands(op)) level = std::max(level, level_of(operand));
      }
      if (level != kIndependent) levels_[&op] = level;
      if (members == divisions_.size()) return;
    }
  }

  // Makes members of the ops between a member's result and another member, where these can be
  // divided. True if it found any.
  bool absorb_between() {
    std::vector<std::pair<Instruction*, RowDivision>> members;
    for (Instruction& op : computation_) {
      const auto found = divisions_.find(&op);
      if (found != divisions_.end()) members.emplace_back(&op, found->second);
      if (&op == last_) break;
    }
    for (const auto& [op, division] : members) {
      for (size_t i = 0; i < op->operand_count(); ++i) {
        Instruction& source = *op->operand(i).def;
        if (level_of(op->operand(i)) == kIndependent || is_member(source)) continue;
        if (division.operands[i] == RowDivision::kNone || kept_outside_.contains(&source)) continue;
        Between between;
        if (collect_between(source, division.operands[i], between)) {
          for (const auto& [each, its] : between) add(*each, its);
          return true;
        }
        kept_outside_.insert(&source);
      }
    }
    return false;
  }

  using Between = std::unordered_map<Instruction*, RowDivision>;

  bool collect_between(Instruction& op, int64_t dimension, Between& between) const {
    const auto known = between.find(&op);
    if (known != between.end()) return known->second.result == dimension;
    const auto division = division_by_result(op, dimension);
    if (!division || between.size() >= kMostBetween || kept_outside_.contains(&op)) return false;
    between.emplace(&op, *division);
    for (size_t i = 0; i < op.operand_count(); ++i) {
      if (level_of(op.operand(i)) == kIndependent) continue;
      if (division->operands[i] == RowDivision::kNone) return false;
      const auto source = divisions_.find(op.operand(i).def);
      if (source == divisions_.end()) {
        if (!collect_between(*op.operand(i).def, division->operands[i], between)) return false;
      } else if (source->second.result != division->operands[i]) {
        return false;
      }
    }
    return true;
  }

  // --- The region

  int level_of_op(const Instruction& op) const {
    const auto found = levels_.find(&op);
    return found == levels_.end() ? kIndependent : found->second;
  }

  std::optional<RowRegion> region() {
    int last = 0;
    for (const auto& [op, division] : divisions_) last = std::max(last, level_of_op(*op));
    if (last > 1) return {};
    std::vector<const Instruction*> needed;
    for (const auto& [op, division] : divisions_) {
      if (!free_.contains(op) && level_of_op(*op) == last) needed.push_back(op);
    }
    std::unordered_set<const Instruction*> own(needed.begin(), needed.end());
    std::unordered_set<const Instruction*> all = own;
    while (!needed.empty()) {
      const Instruction& op = *needed.back();
      needed.pop_back();
      const RowDivision& division = divisions_.at(&op);
      for (size_t i = 0; i < op.operand_count(); ++i) {
        const Instruction* source = op.operand(i).def;
        const auto found = divisions_.find(source);
        if (found == divisions_.end() || found->second.is_combined()) continue;
        if (division.operands[i] != RowDivision::kNone && all.insert(source).second)
          needed.push_back(source);
      }
    }
    return made_of(own, all);
  }

  // Ops that the region does not have for itself: others use them, ops of it that need them as a
  // whole, or the originals of such ops.
  std::unordered_set<const Instruction*> shared(
      const std::vector<Instruction*>& ops, const std::unordered_set<const Instruction*>& all,
      const std::unordered_set<const Instruction*>& own) const {
    std::unordered_set<const Instruction*> found;
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      const bool is_shared = std::ranges::any_of((*op)->uses(), [&](const Use& use) {
        return !all.contains(use.user) || found.contains(use.user) ||
               divisions_.at(use.user).operands[use.operand] == RowDivision::kNone;
      });
      if (!own.contains(*op) && is_shared) found.insert(*op);
    }
    return found;
  }

  RowRegion made_of(const std::unordered_set<const Instruction*>& own,
                    const std::unordered_set<const Instruction*>& all) {
    RowRegion made;
    made.rows = rows_;
    for (Instruction& op : computation_) {
      if (!all.contains(&op)) continue;
      made.ops.push_back(&op);
      const RowDivision& division = divisions_.at(&op);
      made.divisions.emplace(&op, division);
      if (division.is_combined()) made.whole_bytes += op.result_type().shape().byte_size();
      for (size_t i = 0; i < op.operand_count(); ++i) {
        if (division.operands[i] == RowDivision::kNone)
          made.whole_bytes += op.operand_type(i).shape().byte_size();
      }
    }
    made.copies = shared(made.ops, all, own);
    return made;
  }

  Computation& computation_;
  const int64_t rows_;
  const int64_t large_;
  std::unordered_map<const Instruction*, RowDivision> divisions_;
  std::unordered_set<const Instruction*> free_;  ///< Members that read no large array.
  std::vector<Instruction*> queue_;
  std::unordered_map<const Instruction*, int> levels_;
  std::unordered_set<const Instruction*> kept_outside_;
  const Instruction* last_ = nullptr;
};

}  // namespace

std::optional<RowRegion> row_region_of(Instruction& product, int64_t dimension) {
  return RegionFinder(product, dimension).run();
}

}  // namespace tenon::hlo
