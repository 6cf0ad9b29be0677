#include "backends/cpu/codegen/varying.h"

#include <algorithm>

#include "core/kernel/ir/visitor.h"

namespace tenon::cpu {

using kernel::BlockId;
using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;
using kernel::ValueId;

namespace {

constexpr size_t kMathNodes = 20;  // the approximate size of a math function's expansion

// Few operations with few values at a time.
bool is_short(OpCode function) {
  switch (function) {
    case OpCode::kExp:
    case OpCode::kExpm1:
    case OpCode::kLog:
    case OpCode::kLogistic:
    case OpCode::kTanh:
    case OpCode::kErf:
      return true;
    default:
      return false;
  }
}

// The reduction of an angle and two polynomials.
bool is_wide(OpCode function) {
  return function == OpCode::kSin || function == OpCode::kCos || function == OpCode::kTan;
}

}  // namespace

Varying::Varying(const kernel::Kernel& kernel, const Node& statement,
                 const std::vector<ValueId>& lanes)
    : kernel_(kernel), varies_(kernel.values.size()) {
  for (const ValueId lane : lanes) varies_[lane] = true;
  // Whether a loop-carried value varies may be known only at the end of the loop.
  do {
    changed_ = false;
    nodes_ = functions_ = long_functions_ = wide_functions_ = 0;
    accesses_ = 0;
    if (statement.op == OpCode::kReduce) {
      reduce(statement);
    } else if (statement.op == OpCode::kScan) {
      varies_[kernel.block(statement.blocks[2]).arguments[0]] = true;
      scan(statement);
    } else {
      block(statement.blocks[0]);
    }
  } while (changed_);
}

bool Varying::any(const std::vector<ValueId>& values) const {
  return std::ranges::any_of(values, [&](ValueId value) { return varies_[value]; });
}

void Varying::set(ValueId value, bool varies) {
  if (!varies || varies_[value]) return;
  varies_[value] = true;
  changed_ = true;
}

void Varying::flow(BlockId from, const std::vector<ValueId>& values, size_t first, bool varies) {
  const Node& last = kernel_.node(kernel_.block(from).nodes.back());
  for (size_t i = first; i < values.size(); ++i) {
    set(values[i], varies || varies_[last.operands[i - first]]);
  }
}

void Varying::block(BlockId id) {
  for (const NodeId n : kernel_.block(id).nodes) node(kernel_.node(n));
}

// The accumulators are the first half of the combination's arguments.
void Varying::reduce(const Node& n) {
  const std::vector<ValueId>& arguments = kernel_.block(n.blocks[1]).arguments;
  const size_t count = n.results.size();
  block(n.blocks[0]);
  const Node& leaf = kernel_.node(kernel_.block(n.blocks[0]).nodes.back());
  for (size_t i = 0; i < count; ++i) {
    set(n.results[i], varies_[n.operands[i]]);
    set(arguments[i], varies_[n.results[i]]);
    set(arguments[count + i], varies_[leaf.operands[i]]);
  }
  block(n.blocks[1]);
  flow(n.blocks[1], n.results, 0, false);
}

void Varying::scan(const Node& n) {
  reduce(n);
  const std::vector<ValueId>& arguments = kernel_.block(n.blocks[2]).arguments;
  for (size_t i = 0; i < n.results.size(); ++i) set(arguments[i + 1], varies_[n.results[i]]);
  block(n.blocks[2]);
}

void Varying::loop(const Node& n) {
  const bool ends_vary = varies_[n.operands[0]] || varies_[n.operands[1]];
  together_ &= !ends_vary;
  const std::vector<ValueId>& arguments = kernel_.block(n.blocks[0]).arguments;
  set(arguments[0], ends_vary);
  for (size_t i = 0; i < n.results.size(); ++i) {
    set(n.results[i], varies_[n.operands[i + 2]]);
    set(arguments[i + 1], varies_[n.results[i]]);
  }
  block(n.blocks[0]);
  flow(n.blocks[0], n.results, 0, ends_vary);
}

void Varying::node(const Node& n) {
  if (n.op == OpCode::kStore || (n.op == OpCode::kLoad && any(n.operands))) ++accesses_;
  const bool is_function = kernel::is_scalar_op(n.op) && kernel::is_math(n.op);
  nodes_ += is_function ? kMathNodes : 1;
  functions_ += is_function ? 1 : 0;
  long_functions_ += is_function && !is_short(n.op) ? 1 : 0;
  wide_functions_ += is_function && is_wide(n.op) ? 1 : 0;
  visit(n, kernel::Overloads{
               [&](kernel::OnScalar) { set(n.results[0], any(n.operands)); },
               [&](kernel::OnLoad) { set(n.results[0], any(n.operands)); },
               [](kernel::OnStore) {},
               [](kernel::OnYield) {},
               [&](kernel::OnIf) {
                 for (const BlockId b : n.blocks) {
                   block(b);
                   flow(b, n.results, 0, varies_[n.operands[0]]);
                 }
               },
               [&](kernel::OnFor) { loop(n); },
               [&](kernel::OnReduce) { reduce(n); },
               [&](kernel::OnScan) { scan(n); },
               [&](kernel::OnStatement) { together_ = false; },
           });
  for (const ValueId result : n.results) {
    const ElementType type = kernel_.value(result).type;
    if (!varies_[result] || type == kernel_.index_type || is_pred(type)) continue;
    const auto bytes = static_cast<int64_t>(storage_bytes(type));
    widest_ = std::max(widest_, bytes);
    ++numbers_[bytes];
  }
}

int64_t Varying::widest_of_many() const {
  constexpr size_t kFew = 16;  // One in so many.
  size_t all = 0, wider = 0;
  for (const auto& [bytes, count] : numbers_) all += count;
  for (auto each = numbers_.rbegin(); each != numbers_.rend(); ++each) {
    wider += each->second;
    if (wider * kFew > all) return each->first;
  }
  return widest_;
}

}  // namespace tenon::cpu
