// The pass `row-blocks`: large arrays that products make, and that products and reductions use up,
// are computed by blocks of their rows in a loop, so that the blocks stay in a cache. The scores of
// an attention's gradient are such arrays, and the logits of a large vocabulary.
//
//   %s = dot_general(%q, %k) : [n,n]         while (%i < n, step 64)
//   %w = … rows of %s …                        %s = dot_general(%q[%i : %i + 64], %k) : [64,n]
//   %y = dot_general(%w, %v)           ->      %w = … rows of %s …
//   %g = dot_general(transposed %w, %d)        %y[%i : %i + 64] = dot_general(%w, %v)
//                                              %g += dot_general(transposed %w, %d[%i : %i + 64])
#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "hlo/lower/elements/contraction.h"
#include "hlo/lower/lower_op.h"
#include "hlo/lower/schedules/products/attention.h"
#include "hlo/passes/fusion/fuse.h"
#include "hlo/passes/pass.h"
#include "hlo/passes/row_blocks/region.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kFewestBlocks = 4;
constexpr int64_t kFewestBytes = 4;         // Of an array, in bytes of a block.
constexpr int64_t kFewestRows = 64;         // Of a block: its products fill tiles.
constexpr int64_t kFewestRowsOfLong = 256;  // With arrays beside them that no cache holds:
constexpr int64_t kLongWhole = 16;          // of more bytes than these, in bytes of a block.
// Elements of a row of the array for each of its factor's, if making an element takes few products,
// so that it may be made twice, and if it takes more.
constexpr int64_t kFewProducts = 128;
constexpr int64_t kLeastGrowth = 4;
constexpr int64_t kLeastGrowthOfMany = 8;

// Builds the loop that a fusion of a region's ops, divided as `divisions` say in order, stands for.
class RowLoop {
 public:
  RowLoop(Instruction& fusion, const std::vector<RowDivision>& divisions, int64_t rows,
          int64_t block)
      : fusion_(fusion), body_(fusion.region(0)), rows_(rows), block_(block) {
    size_t next = 0;
    for (const Instruction& op : body_) {
      if (op.code() == OpCode::kReturn || op.code() == OpCode::kConstant) continue;
      divisions_.emplace(&op, divisions[next++]);
    }
  }

  Status run() {
    Builder b(*fusion_.parent(), &fusion_);
    b.set_location(fusion_.location());
    std::vector<Value> state = {b.constant(Literal::scalar_integer(ElementType::kS32, 0))};
    for (const Value result : results()) state.push_back(initial(b, result));
    const int64_t end = rows_ / block_ * block_;
    std::vector<Value> after = b.while_loop(
        state,
        [&](Builder& in, const std::vector<Value>& now) {
          return in.compare(ComparisonDirection::kLt, now[0], number(in, end));
        },
        [&](Builder& in, const std::vector<Value>& now) {
          std::vector<Value> next = turn(in, now, block_);
          next[0] = in.add(now[0], number(in, block_));
          return next;
        });
    if (end < rows_) {
      after[0] = number(b, end);
      after = turn(b, after, rows_ - end);
    }
    after.erase(after.begin());
    for (size_t r = 0; r < after.size(); ++r) {
      after[r] = b.convert(after[r], fusion_.result_type(r).element_type());
    }
    if (!b.ok()) return b.status();
    fusion_.replace_all_uses(after);
    fusion_.parent()->erase(&fusion_);
    return {};
  }

 private:
  static Value number(Builder& b, int64_t value) {
    return b.constant(Literal::scalar_integer(ElementType::kS32, value));
  }
  std::vector<Value> results() const { return body_.return_instruction()->operands(); }

  Value initial(Builder& b, Value result) {
    const RowDivision& division = divisions_.at(result.def);
    if (!division.is_combined())
      return b.splat(Shape(result.type().element_type(), result.type().dims()), 0);
    // Only the init value of a reduction is asked for, which comes from outside.
    std::vector<Value> operands(result.def->operand_count());
    if (result.def->code() == OpCode::kReduce) operands[1] = whole(b, result.def->operand(1));
    return neutral_of(b, *result.def, division, operands);
  }

  // The values of the loop after a block of `count` rows.
  std::vector<Value> turn(Builder& b, const std::vector<Value>& now, int64_t count) {
    blocks_.clear();
    whole_.clear();
    const RowBlock rows = {now[0], count};
    for (const Instruction& op : body_) {
      if (op.code() == OpCode::kReturn || op.code() == OpCode::kConstant) continue;
      const RowDivision& division = divisions_.at(&op);
      std::vector<Value> operands;
      for (size_t i = 0; i < op.operand_count(); ++i) {
        operands.push_back(operand(b, op.operand(i), division.operands[i], rows));
      }
      const std::vector<Value> made = block_of(b, op, division, operands, rows);
      for (uint32_t r = 0; r < made.size(); ++r) blocks_[{&op, r, division.result}] = made[r];
    }
    std::vector<Value> next = {now[0]};
    for (const Value result : results()) {
      const RowDivision& division = divisions_.at(result.def);
      const Value block = blocks_[{result.def, result.index, division.result}];
      const Value before = now[next.size()];
      if (division.is_combined()) {
        const Value part = b.convert(block, sum_type(*result.def, division));
        next.push_back(b.binary(division.combiner, before, part));
      } else {
        const std::vector<Value> place = starts(b, result, division.result, rows);
        next.push_back(b.dynamic_update_slice(before, block, place));
      }
    }
    return next;
  }

  static std::vector<Value> starts(Builder& b, Value value, int64_t dimension,
                                   const RowBlock& rows) {
    std::vector<Value> found(value.type().dims().size(), number(b, 0));
    found[static_cast<size_t>(dimension)] = rows.first;
    return found;
  }

  Value operand(Builder& b, Value value, int64_t dimension, const RowBlock& rows) {
    if (dimension == RowDivision::kNone) return whole(b, value);
    const auto known = blocks_.find({value.def, value.index, dimension});
    if (known != blocks_.end()) return known->second;
    Value block;
    if (lower::is_inline_constant(*value.def)) {
      block = splat_block(b, *value.def, dimension, rows.count);
    } else {
      I64s sizes = value.type().dims();
      sizes[static_cast<size_t>(dimension)] = rows.count;
      block = b.dynamic_slice(whole(b, value), starts(b, value, dimension, rows), sizes);
    }
    return blocks_[{value.def, value.index, dimension}] = block;
  }

  // A value of the fusion's body as one outside of it: a parameter or a constant.
  Value whole(Builder& b, Value value) {
    for (size_t i = 0; i < body_.parameter_count(); ++i) {
      if (body_.parameter(i) == value) return fusion_.operand(i);
    }
    Value& constant = whole_[value.def];
    if (!constant) constant = only(b.create(Cloner().clone(*value.def)));
    return constant;
  }
  static Value only(Instruction* op) { return op == nullptr ? Value{} : op->result(); }

  Instruction& fusion_;
  Computation& body_;
  std::unordered_map<const Instruction*, RowDivision> divisions_;
  const int64_t rows_, block_;
  /// The blocks of a turn, by op, result and the dimension that is divided.
  std::map<std::tuple<const Instruction*, uint32_t, int64_t>, Value> blocks_;
  std::unordered_map<const Instruction*, Value> whole_;
};

class RowBlocksPass {
 public:
  explicit RowBlocksPass(const lower::CostModel& cost) : cost_(cost) {}

  Result<bool> run(Computation& computation) {
    bool changed = false;
    std::vector<Instruction*> products;
    for (Instruction& op : computation) {
      if (op.code() == OpCode::kFusion) continue;
      if (op.code() == OpCode::kDotGeneral) products.push_back(&op);
      for (size_t r = 0; r < op.region_count(); ++r) {
        TENON_ASSIGN(const bool inner, run(op.region(r)));
        changed |= inner;
      }
    }
    // Those that are gone into a loop are no longer asked.
    for (size_t i = 0; i < products.size(); ++i) {
      if (products[i] == nullptr || !is_long(*products[i])) continue;
      TENON_ASSIGN(const bool here, divide(*products[i], products));
      changed |= here;
    }
    return changed;
  }

 private:
  bool is_long(const Instruction& product) const {
    const Type& type = product.result_type();
    return type.is_tensor() && type.shape().is_static() && is_float(type.element_type()) &&
           type.shape().byte_size() / kFewestBytes >= cost_.row_block_bytes;
  }

  static bool is_costly(const Instruction& product) {
    return element_count(lower::DotShape(product).k) > kFewProducts;
  }

  // Whether the array has many more elements than the factors that its rows are made of.
  static bool grows(const Instruction& product, const RowDivision& division) {
    const int64_t least = is_costly(product) ? kLeastGrowthOfMany : kLeastGrowth;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t factor = element_count(product.operand_type(i).dims());
      if (division.operands[i] != RowDivision::kNone &&
          element_count(product.result_type().dims()) < least * factor)
        return false;
    }
    return true;
  }

  // Rows of a block, or 0 if blocks do not pay. Rows of a dimension that all arrays have, of
  // matrices that are independent of one another, may be few.
  int64_t rows_of_block(const RowRegion& region, const Type& large, bool are_matrices) const {
    const int64_t row_bytes = std::max<int64_t>(large.shape().byte_size() / region.rows, 1);
    const bool is_long = region.whole_bytes / kLongWhole > cost_.row_block_bytes;
    const int64_t fewest = are_matrices ? 0 : is_long ? kFewestRowsOfLong : kFewestRows;
    const int64_t most = std::max(cost_.row_block_bytes / row_bytes, fewest);
    constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();  // The loop counts in s32.
    if (most == 0 || region.rows / most < kFewestBlocks || region.rows > kMostRows) return 0;
    for (int64_t rows = most; rows > most / 2; --rows) {
      if (region.rows % rows == 0) return rows;
    }
    return most;
  }

  // The pass `attention` makes one kernel of these ops.
  bool is_attention(const RowRegion& region) const {
    return std::ranges::any_of(region.ops, [&](const Instruction* op) {
      const auto attention = lower::attention_of(*op);
      return attention && lower::is_long_attention(*attention, cost_);
    });
  }

  // Whether a product that takes long would be made twice.
  static bool repeats_much(const RowRegion& region) {
    return std::ranges::any_of(region.copies, [](const Instruction* op) {
      return op->code() == OpCode::kDotGeneral && is_costly(*op);
    });
  }

  Result<bool> divide(Instruction& product, std::vector<Instruction*>& products) const {
    for (const RowDivision& division : divisions_of(product)) {
      if (division.is_combined() || !grows(product, division)) continue;
      std::optional<RowRegion> region = row_region_of(product, division.result);
      if (!region || is_attention(*region) || repeats_much(*region)) continue;
      const bool are_matrices =
          division.operands[0] != RowDivision::kNone && division.operands[1] != RowDivision::kNone;
      const int64_t rows = rows_of_block(*region, product.result_type(), are_matrices);
      if (rows == 0) continue;
      return make_loop(*region, rows, products);
    }
    return false;
  }

  static Result<bool> make_loop(RowRegion& region, int64_t rows,
                                std::vector<Instruction*>& products) {
    copy_shared(region);
    for (Instruction*& each : products) {
      if (region.divisions.contains(each)) each = nullptr;
    }
    std::vector<RowDivision> divisions;
    for (const Instruction* op : region.ops) divisions.push_back(region.divisions.at(op));
    const Result<Instruction*> fusion = fuse(region.ops);
    if (!fusion) return false;
    TENON_TRY(RowLoop(**fusion, divisions, region.rows, rows).run());
    return true;
  }

  // Replaces ops that others need, too, by copies.
  static void copy_shared(RowRegion& region) {
    Cloner copies;
    for (Instruction*& op : region.ops) {
      if (region.copies.contains(op)) {
        Instruction* const copy = op->parent()->insert(Cloner().clone(*op), op->next());
        region.divisions[copy] = region.divisions.at(op);
        region.divisions.erase(op);
        for (uint32_t r = 0; r < op->result_count(); ++r)
          copies.map(op->result(r), copy->result(r));
        op = copy;
      }
      const std::vector<int64_t>& dimensions = region.divisions.at(op).operands;
      for (size_t i = 0; i < op->operand_count(); ++i) {
        if (dimensions[i] != RowDivision::kNone) op->set_operand(i, copies(op->operand(i)));
      }
    }
  }

  const lower::CostModel& cost_;
};

}  // namespace

Result<bool> compute_in_row_blocks(Module& module, const PassOptions& options) {
  bool changed = false;
  for (const auto& function : module.functions()) {
    TENON_ASSIGN(const bool here, RowBlocksPass(options.cost).run(*function));
    changed |= here;
  }
  return changed;
}

}  // namespace tenon::hlo
