#include "hlo/passes/rewrite/rewriter.h"

#include <array>
#include <deque>
#include <numeric>
#include <unordered_map>

#include "hlo/passes/rewrite/pattern.h"

namespace tenon::hlo::rewrite {
namespace {

struct NumberedRule {
  CompiledRule compiled;
  size_t number = 0;  // Its index in all_rules().
};

// Rules by the root op of their patterns.
struct RuleIndex {
  std::array<std::vector<NumberedRule>, kOpCount> by_code;
  Status status;
};

const RuleIndex& rule_index() {
  static const RuleIndex kIndex = [] {
    RuleIndex index;
    const std::span<const Rule* const> rules = all_rules();
    for (size_t i = 0; i < rules.size(); ++i) {
      auto compiled = compile_rule(*rules[i]);
      if (!compiled) {
        index.status = Status(std::move(compiled.error()));
        break;
      }
      const auto code = static_cast<size_t>(compiled->pattern.code);
      index.by_code[code].push_back({std::move(*compiled), i});
    }
    return index;
  }();
  return kIndex;
}

// Instructions to visit, each queued at most once, first in first out.
class Worklist {
 public:
  void push(Instruction* op) {
    if (!tickets_.try_emplace(op, next_).second) return;
    queue_.emplace_back(op, next_++);
  }
  // Null if empty.
  Instruction* pop() {
    while (!queue_.empty()) {
      const auto [op, ticket] = queue_.front();
      queue_.pop_front();
      // An erased instruction has no ticket; a new instruction at the same address has a different
      // ticket.
      const auto found = tickets_.find(op);
      if (found == tickets_.end() || found->second != ticket) continue;
      tickets_.erase(found);
      return op;
    }
    return nullptr;
  }
  void forget(const Instruction& op) { tickets_.erase(const_cast<Instruction*>(&op)); }

 private:
  std::deque<std::pair<Instruction*, uint64_t>> queue_;
  std::unordered_map<Instruction*, uint64_t> tickets_;
  uint64_t next_ = 0;
};

class RuleDriver {
 public:
  RuleDriver(const RuleIndex& rules, const Options& options)
      : rules_(rules), options_(options), is_disabled_(all_rules().size()) {
    counts_.hits.resize(all_rules().size());
    for (size_t i = 0; i < is_disabled_.size(); ++i) {
      const Rule& rule = *all_rules()[i];
      is_disabled_[i] = rule.exactness > options.exactness || (rule.is_late && !options.late);
    }
  }

  Result<bool> run(Module& module) {
    for (const std::string& name : options_.disabled) {
      const Rule* rule = find_rule(name);
      if (rule == nullptr) return not_found("there is no rule '{}'", name);
      for (size_t i = 0; i < is_disabled_.size(); ++i) {
        if (all_rules()[i] == rule) is_disabled_[i] = true;
      }
    }
    int64_t count = 0;
    for (const auto& function : module.functions()) count += push_all(*function);
    int64_t left = options_.budget * count;
    while (Instruction* op = worklist_.pop()) {
      if (left == 0) {
        counts_.is_exhausted = true;
        break;
      }
      ++counts_.visited;
      TENON_ASSIGN(const bool here, visit(*op));
      if (here) --left;
    }
    report();
    return counts_.total() > 0;
  }

 private:
  int64_t push_all(Computation& computation) {
    int64_t count = 0;
    for (Instruction& op : computation) {
      for (size_t r = 0; r < op.region_count(); ++r) count += push_all(op.region(r));
      if (!rules_.by_code[static_cast<size_t>(op.code())].empty()) worklist_.push(&op);
      ++count;
    }
    return count;
  }

  Result<bool> visit(Instruction& op) {
    if (op.result_count() != 1 || op.uses().empty()) return false;
    Match match;
    for (const auto& [compiled, number] : rules_.by_code[static_cast<size_t>(op.code())]) {
      if (is_disabled_[number] || !matches(compiled, op, match)) continue;
      Instruction* const before = op.previous();
      Builder builder(*op.parent(), &op);
      builder.set_location(op.location());
      const Value value = build_replacement(compiled, builder, match);
      if (!builder.ok()) {
        return Error(Status(builder.status()).in_stage(std::string(compiled.rule->name)));
      }
      if (!value || value.type() != op.result_type()) continue;
      ++counts_.hits[number];
      replace(op, before, value);
      return true;
    }
    return false;
  }

  // Visits the users of the value again, and the instructions that were built for it after
  // `before`.
  void replace(Instruction& op, Instruction* before, Value value) {
    Computation& computation = *op.parent();
    Instruction* built = before != nullptr ? before->next() : computation.first();
    for (; built != &op; built = built->next()) worklist_.push(built);
    for (const Use& use : op.uses()) worklist_.push(use.user);
    op.replace_uses(0, value);
    worklist_.forget(op);
    computation.erase(&op);
  }

  void report() const {
    if (options_.statistics == nullptr) return;
    Statistics& all = *options_.statistics;
    all.hits.resize(counts_.hits.size());
    for (size_t i = 0; i < counts_.hits.size(); ++i) all.hits[i] += counts_.hits[i];
    all.visited += counts_.visited;
    all.is_exhausted |= counts_.is_exhausted;
  }

  const RuleIndex& rules_;
  const Options& options_;
  std::vector<bool> is_disabled_;  // By index of the rule.
  Worklist worklist_;
  Statistics counts_;
};

}  // namespace

int64_t Statistics::total() const { return std::accumulate(hits.begin(), hits.end(), int64_t{0}); }

Result<bool> apply_rules(Module& module, const Options& options) {
  const RuleIndex& rules = rule_index();
  if (!rules.status.ok()) return Error(rules.status);
  return RuleDriver(rules, options).run(module);
}

}  // namespace tenon::hlo::rewrite
