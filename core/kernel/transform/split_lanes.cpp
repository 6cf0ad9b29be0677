#include "core/kernel/transform/split_lanes.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/kernel/ir/ops.h"
#include "core/kernel/ir/visitor.h"
#include "core/kernel/transform/rewriter.h"
#include "core/kernel/transform/simplify.h"

namespace tenon::kernel {
namespace {

constexpr size_t kMostCuts = 3;  // of a loop

// A comparison that holds for the indices of one dimension below `at`, or for the others.
struct IndexCut {
  size_t dimension = 0;
  int64_t at = 0;
  bool holds_below = false;
};

class LanesSplitter : public Rewriter {
 public:
  LanesSplitter(const Kernel& from, int64_t most_together)
      : Rewriter(from), most_together_(most_together) {}

  bool changed() const { return changed_; }

 private:
  void node(const Node& n) override {
    if (n.op == OpCode::kLanes && known_.empty() && split(n)) return;
    const auto known = n.results.empty() ? known_.end() : known_.find(n.results[0]);
    if (known == known_.end()) return copy_node(n);
    set(n.results[0], to().pred(known->second));
  }

  // The index that `value` is a constant apart from, and that constant; nothing for other values.
  std::optional<std::pair<size_t, int64_t>> index_of(const Node& lanes, ValueId value) const {
    const std::vector<ValueId>& indices = from().block(lanes.blocks[0]).arguments;
    int64_t apart = 0;
    for (int depth = 0; depth < 8; ++depth) {
      const auto found = std::ranges::find(indices, value);
      if (found != indices.end())
        return std::pair(static_cast<size_t>(found - indices.begin()), apart);
      const Value& v = from().value(value);
      if (v.kind != ValueKind::kResult) return {};
      const Node& n = from().node(v.node);
      if (n.op != OpCode::kAdd && n.op != OpCode::kSub) return {};
      const std::optional<int64_t> second = number(n.operands[1]);
      if (!second) return {};
      apart += n.op == OpCode::kAdd ? *second : -*second;
      value = n.operands[0];
    }
    return {};
  }

  std::optional<int64_t> number(ValueId value) const {
    const Value& v = from().value(value);
    if (v.kind != ValueKind::kConstant || v.type != from().index_type) return {};
    return v.type == ElementType::kS32 ? static_cast<int32_t>(v.bits)
                                       : static_cast<int64_t>(v.bits);
  }

  std::optional<IndexCut> cut_of(const Node& lanes, const Node& n) const {
    const bool below = n.op == OpCode::kLt || n.op == OpCode::kLe;
    if (!below && n.op != OpCode::kGt && n.op != OpCode::kGe) return {};
    const auto index = index_of(lanes, n.operands[0]);
    const auto limit = number(n.operands[1]);
    if (!index || !limit) return {};
    const bool behind = n.op == OpCode::kLe || n.op == OpCode::kGt;
    return IndexCut{index->first, *limit - index->second + (behind ? 1 : 0), below};
  }

  bool is_long(const Node& lanes, size_t dimension) const {
    const auto first = lanes.extents.begin() + static_cast<std::ptrdiff_t>(dimension);
    return element_count(Dims(first, lanes.extents.end())) > most_together_;
  }

  bool split(const Node& n) {
    std::map<ValueId, IndexCut> cuts;
    std::map<size_t, std::set<int64_t>> places;
    bool accesses = false;
    for_each_node(from(), n.blocks[0], [&](const Node& each) {
      if (each.op == OpCode::kIf) {
        accesses |=
            any_node(from(), each.blocks[0], [](const Node& x) { return is<OnAccess>(x.op); }) ||
            any_node(from(), each.blocks[1], [](const Node& x) { return is<OnAccess>(x.op); });
      }
      const std::optional<IndexCut> cut = cut_of(n, each);
      if (!cut || !is_long(n, cut->dimension)) return;
      cuts[each.results[0]] = *cut;
      if (cut->at > 0 && cut->at < n.extents[cut->dimension])
        places[cut->dimension].insert(cut->at);
    });
    if (!accesses || places.empty()) return false;
    const auto& [dimension, at] = *places.begin();
    if (at.size() > kMostCuts) return false;
    std::vector<int64_t> ends(at.begin(), at.end());
    ends.push_back(n.extents[dimension]);
    int64_t begin = 0;
    for (const int64_t end : ends) {
      for (const auto& [value, cut] : cuts) {
        if (cut.dimension == dimension) known_[value] = (end <= cut.at) == cut.holds_below;
      }
      Dims extents = n.extents;
      extents[dimension] = end - begin;
      to().lanes(extents, [&](const Values& indices) {
        for (size_t d = 0; d < indices.size(); ++d) {
          const ValueId index =
              d == dimension && begin != 0 ? to().add(indices[d], to().index(begin)) : indices[d];
          set(from().block(n.blocks[0]).arguments[d], index);
        }
        copy_nodes(n.blocks[0]);
      });
      known_.clear();
      begin = end;
    }
    changed_ = true;
    return true;
  }

  const int64_t most_together_;
  std::map<ValueId, bool> known_;  ///< Comparisons within the loop that is being copied.
  bool changed_ = false;
};

}  // namespace

Kernel split_lanes(const Kernel& kernel, int64_t most_together) {
  const bool is_private = std::ranges::any_of(
      kernel.memories, [](const Memory& m) { return m.space == Space::kPrivate; });
  const bool chooses =
      any_node(kernel, kernel.body, [](const Node& n) { return n.op == OpCode::kIf; });
  if (is_private || !chooses) return kernel;
  LanesSplitter splitter(kernel, most_together);
  Kernel split = splitter.run();
  return splitter.changed() ? simplify(split) : kernel;
}

}  // namespace tenon::kernel
