// dot, einsum, unary_einsum, cross-replica-sum and chlo.ragged_dot.
#include <algorithm>

#include "hlo/expand/expand_util.h"

namespace tenon::hlo::expand {
namespace {

Value contract(Builder& b, Value lhs, Value rhs, DotDims dims, const Instruction& op,
               ElementType type) {
  const Value result = b.dot_general(lhs, rhs, std::move(dims), type);
  const Attribute* precision = op.attribute(AttrKey::precision_config);
  if (b.ok() && precision != nullptr) {
    result.def->mutable_attributes().set(AttrKey::precision_config, *precision);
  }
  return result;
}

// "ab,bc->ac": the letters of the operands and of the result.
struct Einsum {
  std::string lhs, rhs, result;
};

// The verifier has matched the formula with the operands. Diagonals (a letter twice in an array) it
// lets pass.
Result<Einsum> parse_einsum(const Instruction& op) {
  const std::string text(op.text(AttrKey::einsum_config));
  const size_t arrow = text.find("->");
  const size_t comma = std::min(text.find(','), arrow);
  Einsum e;
  e.lhs = text.substr(0, comma);
  if (comma < arrow) e.rhs = text.substr(comma + 1, arrow - comma - 1);
  e.result = text.substr(arrow + 2);
  for (const std::string* part : {&e.lhs, &e.rhs, &e.result}) {
    const std::string& s = *part;
    for (size_t i = 0; i < s.size(); ++i) {
      const bool letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z');
      if (!letter || s.find(s[i], i + 1) != std::string::npos) {
        return unimplemented("{}: '{}': letters, each once an array, are understood", op.name(), text);
      }
    }
  }
  return e;
}

bool has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

// Sums over the dimensions whose letters `keep` refuses; `letters` loses them too.
template <class Keep>
Value sum_others(Builder& b, Value x, std::string& letters, Keep keep) {
  I64s dimensions;
  std::string kept;
  for (size_t i = 0; i < letters.size(); ++i) {
    if (keep(letters[i])) {
      kept += letters[i];
    } else {
      dimensions.push_back(static_cast<int64_t>(i));
    }
  }
  letters = kept;
  if (dimensions.empty() || !b.ok()) return x;
  return b.reduce(OpCode::kAdd, x, b.scalar(x.type().element_type(), 0), dimensions);
}

Value arrange(Builder& b, Value x, const std::string& from, const std::string& to) {
  I64s permutation;
  bool identity = true;
  for (size_t i = 0; i < to.size(); ++i) {
    permutation.push_back(static_cast<int64_t>(from.find(to[i])));
    identity &= permutation.back() == static_cast<int64_t>(i);
  }
  return identity ? x : b.transpose(x, permutation);
}

}  // namespace

Values dot(Builder& b, const Instruction& op) {
  const int64_t lhs_rank = op.operand_type(0).rank();
  DotDims dims;
  dims.lhs_contracting = {lhs_rank - 1};
  dims.rhs_contracting = {0};
  return done(b, {contract(b, op.operand(0), op.operand(1), dims, op, op.result_type().element_type())});
}

Values einsum(Builder& b, const Instruction& op) {
  TENON_ASSIGN(Einsum e, parse_einsum(op));
  const ElementType type = op.result_type().element_type();
  const Value lhs = sum_others(b, op.operand(0), e.lhs,
                               [&](char c) { return has(e.rhs, c) || has(e.result, c); });
  const Value rhs = sum_others(b, op.operand(1), e.rhs,
                               [&](char c) { return has(e.lhs, c) || has(e.result, c); });
  DotDims dims;
  std::string batch;
  std::string lhs_free;
  std::string rhs_free;
  for (size_t i = 0; i < e.lhs.size(); ++i) {
    const size_t other = e.rhs.find(e.lhs[i]);
    if (other == std::string::npos) {
      lhs_free += e.lhs[i];
      continue;
    }
    const bool batching = has(e.result, e.lhs[i]);
    if (batching) batch += e.lhs[i];
    (batching ? dims.lhs_batching : dims.lhs_contracting).push_back(static_cast<int64_t>(i));
    (batching ? dims.rhs_batching : dims.rhs_contracting).push_back(static_cast<int64_t>(other));
  }
  for (const char c : e.rhs) {
    if (!has(e.lhs, c)) rhs_free += c;
  }
  const Value product = contract(b, lhs, rhs, dims, op, type);
  return done(b, {arrange(b, product, batch + lhs_free + rhs_free, e.result)});
}

Values unary_einsum(Builder& b, const Instruction& op) {
  TENON_ASSIGN(Einsum e, parse_einsum(op));
  const Value x = sum_others(b, op.operand(0), e.lhs, [&](char c) { return has(e.result, c); });
  return done(b, {arrange(b, x, e.lhs, e.result)});
}

Values cross_replica_sum(Builder& b, const Instruction& op) {
  std::vector<std::unique_ptr<Computation>> regions;
  regions.push_back(binary_region(OpCode::kAdd, op.operand_type(0).with_dims({})));
  Instruction* reduced =
      b.create(OpCode::kAllReduce, {op.operand(0)},
               {{AttrKey::replica_groups, *op.attribute(AttrKey::replica_groups)}},
               {op.operand_type(0)}, std::move(regions));
  return done(b, {reduced ? reduced->result() : Value{}});
}

namespace {

// Positions start … start + size of group g along a ragged dimension, as a mask of `dims`: true where
// the coordinate along `axis` lies in the group. `sizes` holds the group sizes, with batching
// dimensions before the groups when there are any; `batch_axes` says where those lie in `dims`.
Value group_mask(Builder& b, Value sizes, int64_t group, const Dims& dims, int64_t axis,
                 const I64s& batch_axes) {
  const ElementType type = sizes.type().element_type();
  const auto group_axis = static_cast<size_t>(sizes.type().rank() - 1);
  const auto part = [&](int64_t from, int64_t to) {
    I64s start(group_axis + 1, 0);
    I64s limit = sizes.type().dims();
    start[group_axis] = from;
    limit[group_axis] = to;
    return b.slice(sizes, start, limit);
  };
  const auto total = [&](int64_t to) {
    return b.broadcast_in_dim(
        b.reduce(OpCode::kAdd, part(0, to), b.scalar(type, 0), {static_cast<int64_t>(group_axis)}),
        dims, batch_axes);
  };
  const Value position = b.iota(type, dims, axis);
  return b.binary(OpCode::kAnd, b.compare(ComparisonDirection::kGe, position, total(group)),
                  b.compare(ComparisonDirection::kLt, position, total(group + 1)));
}

}  // namespace

// For each group the rows (mode 1), contracted elements (2) or batches (3) outside it are zero, and
// the products of all groups are added (or stacked, mode 2).
Values chlo_ragged_dot(Builder& b, const Instruction& op) {
  const auto& numbers = *op.attr<RaggedDotDims>(AttrKey::ragged_dot_dimension_numbers);
  const DotDims& dot = numbers.dot;
  const Value lhs = op.operand(0);
  const Value rhs = op.operand(1);
  const Value sizes = op.operand(2);
  const int64_t ragged = numbers.lhs_ragged[0];
  const ElementType type = op.result_type().element_type();
  const auto contains = [](const I64s& list, int64_t d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  };
  if (contains(dot.lhs_batching, ragged)) {
    // Groups of batches change nothing of a batched product.
    return done(b, {contract(b, lhs, rhs, dot, op, type)});
  }
  const bool contracts_groups = contains(dot.lhs_contracting, ragged);
  const int64_t groups = sizes.type().dims().back();
  I64s batch_axes;
  for (int64_t d = 0; d + 1 < sizes.type().rank(); ++d) {
    batch_axes.push_back(dot.lhs_batching[static_cast<size_t>(d)]);
  }
  Value sum;
  std::vector<Value> parts;
  for (int64_t g = 0; g < groups && b.ok(); ++g) {
    const Value mask = group_mask(b, sizes, g, lhs.type().dims(), ragged, batch_axes);
    const Value masked = b.select(mask, lhs, b.splat_like(lhs, 0));
    Value weights = rhs;
    if (!contracts_groups) {
      // Group g's slice of the right side, without the group dimension.
      const auto axis = static_cast<size_t>(numbers.rhs_group[0]);
      I64s start(rhs.type().dims().size(), 0);
      I64s limit = rhs.type().dims();
      start[axis] = g;
      limit[axis] = g + 1;
      Dims without = rhs.type().dims();
      without.erase(without.begin() + static_cast<ptrdiff_t>(axis));
      weights = b.reshape(b.slice(rhs, start, limit), without);
    }
    DotDims dims = dot;
    if (!contracts_groups) {
      const int64_t axis = numbers.rhs_group[0];
      for (I64s* list : {&dims.rhs_batching, &dims.rhs_contracting}) {
        for (int64_t& d : *list) d -= d > axis ? 1 : 0;
      }
    }
    const Value product = contract(b, masked, weights, dims, op, type);
    if (contracts_groups) {
      if (!b.ok()) break;
      Dims stacked = product.type().dims();
      stacked.insert(stacked.begin(), 1);
      parts.push_back(b.reshape(product, stacked));
    } else {
      sum = sum ? b.add(sum, product) : product;
    }
  }
  if (contracts_groups && !parts.empty()) return done(b, {b.concatenate(parts, 0)});
  if (!sum) sum = b.splat(Shape(type, op.result_type().dims()), 0);
  return done(b, {sum});
}

}  // namespace tenon::hlo::expand
