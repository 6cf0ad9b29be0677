#include "hlo/lower/schedules/schedules.h"

#include <algorithm>

#include "hlo/ir/region.h"

namespace tenon::hlo::lower {

FusedOp::FusedOp(const Instruction& instruction) : op(instruction) {
  if (op.code() != OpCode::kFusion) {
    inner = {&op};
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      results.push_back({const_cast<Instruction*>(&op), r});
    }
    return;
  }
  for (const Instruction& each : op.region(0)) {
    if (each.code() == OpCode::kReturn) break;
    if (each.code() != OpCode::kConstant) inner.push_back(&each);
  }
  results = op.region(0).return_instruction()->operands();
}

const Instruction* FusedOp::whole() const {
  const Instruction* all = inner.size() == 1 ? inner[0] : nullptr;
  if (all == nullptr || all->result_count() != results.size()) return nullptr;
  for (uint32_t r = 0; r < results.size(); ++r) {
    if (results[r] != Value{const_cast<Instruction*>(all), r}) return nullptr;
  }
  return all;
}

const Instruction* FusedOp::only(OpCode code) const {
  const Instruction* found = nullptr;
  for (const Instruction* each : inner) {
    if (each->code() != code) continue;
    if (found != nullptr) return nullptr;
    found = each;
  }
  return found;
}

bool FusedOp::combines(const Instruction* except) const {
  return std::ranges::any_of(inner, [&](const Instruction* each) {
    const Category category = each->info().category;
    return each != except &&
           (category == Category::kReduction || category == Category::kContraction);
  });
}

namespace {

const Schedule* const kAll[] = {
    &kSliceUpdate,   &kAttention,       &kTiledDot, &kTiledConvolution, &kTwoStage,
    &kPrefixScan,    &kRowWorkgroup,    &kRowLane,  &kConcatenation,    &kTiledTranspose,
    &kSharedColumns, &kSharedReduction, &kElements};

}  // namespace

std::span<const Schedule> schedules() {
  static const std::vector<Schedule> rows = [] {
    std::vector<Schedule> list;
    for (const Schedule* each : kAll) list.push_back(*each);
    return list;
  }();
  return rows;
}

std::string schedules_documentation() {
  std::string text = "| schedule | takes | makes |\n|---|---|---|\n";
  for (const Schedule& each : schedules()) {
    text += fmt::format("| `{}` | {} | {} |\n", each.name, each.takes, each.makes);
  }
  text += "\n| parameter | meaning | values |\n|---|---|---|\n";
  for (const TuningParameterInfo& each : all_tuning_parameters()) {
    text += fmt::format("| `{}` | {} | {} |\n", each.name, each.meaning,
                        each.is_flag() ? "0, 1" : fmt::format("1 to {}", each.most));
  }
  return text;
}

void store_results(KernelMaker& maker, const FusedOp& fused, const std::vector<uint32_t>& which,
                   const std::vector<kernel::MemoryId>& memories, const Values& index) {
  for (size_t i = 0; i < which.size(); ++i) {
    maker.e().store(maker.e().element(fused.results[which[i]], index), memories[i], index);
  }
}

const Instruction* reduction_of(const FusedOp& fused) {
  const Instruction* root = fused.results.empty() ? nullptr : fused.results[0].def;
  if (std::ranges::find(fused.inner, root) == fused.inner.end()) return nullptr;
  // Another reduction would be computed again for each leaf or part.
  if (root->code() != OpCode::kReduce || fused.combines(root)) return nullptr;
  if (!combines_accumulators(root->region(0))) return nullptr;
  const bool all_of_root =
      std::ranges::all_of(fused.results, [&](Value each) { return each.def == root; });
  return all_of_root ? root : nullptr;
}

bool is_minor(const Dims& dims, const I64s& listed) {
  for (auto d = static_cast<int64_t>(dims.size()) - 1; d >= 0; --d) {
    if (dims[static_cast<size_t>(d)] != 1) return contains(listed, d);
  }
  return false;
}

std::vector<Values> constant_indices(kernel::Builder& b, const Dims& dims) {
  std::vector<Values> all(static_cast<size_t>(element_count(dims)));
  for (size_t n = 0; n < all.size(); ++n) {
    int64_t size = std::ssize(all);
    for (const int64_t extent : dims) {
      size /= extent;
      all[n].push_back(b.index(static_cast<int64_t>(n) / size % extent));
    }
  }
  return all;
}

void for_each_serially(kernel::Builder& b, const Dims& dims,
                       const std::function<void(const Values&)>& body) {
  Values index;
  const std::function<void()> nest = [&] {
    if (index.size() == dims.size()) return body(index);
    b.for_loop(b.index(0), b.index(dims[index.size()]), 1, {}, [&](const Values& at) {
      index.push_back(at[0]);
      nest();
      index.pop_back();
      return Values{};
    });
  };
  nest();
}

}  // namespace tenon::hlo::lower
