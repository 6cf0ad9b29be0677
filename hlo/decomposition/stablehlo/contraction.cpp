// hlo/decomposition/stablehlo/: decompositions of StableHLO ops.
//
// Contractions in other notations as dot_general, and other ops outside the specification that have
// a direct equivalent in it.
#include <algorithm>
#include <optional>
#include <string>

#include "hlo/decomposition/decomposition_util.h"
#include "hlo/decomposition/math_builder.h"

namespace tenon::hlo::decomposition {

Values dot(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  DotDims dims;
  dims.lhs_contracting = {op.operand_type(0).rank() - 1};
  dims.rhs_contracting = {0};
  auto form = std::make_unique<Instruction>(OpCode::kDotGeneral, op.operands(), op.result_types());
  form->mutable_attributes().set(AttrKey::dot_dimension_numbers, dims);
  if (const Attribute* precision = op.attribute(AttrKey::precision_config)) {
    form->mutable_attributes().set(AttrKey::precision_config, *precision);
  }
  Instruction* made = b.create(std::move(form));
  return finished(b, {made ? made->result() : Value{}});
}

// --- Products of complex numbers

namespace {

constexpr int64_t kLeastProducts = int64_t{1} << 16;  // for which real tiles pay
constexpr int64_t kLeastSize = 8;                     // of each side of a product

// The dimension of each operand along which its parts lie side by side, and of the result.
struct PartsAlong {
  int64_t lhs = 0;
  int64_t rhs = 0;       ///< Summed, as that of the left operand.
  int64_t rhs_free = 0;  ///< Becomes `result`.
  int64_t result = 0;
};

std::optional<PartsAlong> parts_of_dot(const Instruction& op) {
  const auto& dims = *op.attr<DotDims>(AttrKey::dot_dimension_numbers);
  if (dims.lhs_contracting.empty() || op.attribute(AttrKey::algorithm) != nullptr) return {};
  const auto is_free = [&](int64_t d) {
    return !contains(dims.rhs_batching, d) && !contains(dims.rhs_contracting, d);
  };
  int64_t free = op.operand_type(1).rank() - 1;
  while (free >= 0 && !is_free(free)) --free;
  if (free < 0) return {};
  return PartsAlong{dims.lhs_contracting[0], dims.rhs_contracting[0], free,
                    op.result_type().rank() - 1};
}

std::optional<PartsAlong> parts_of_convolution(const Instruction& op) {
  const auto& dims = *op.attr<ConvDims>(AttrKey::dimension_numbers);
  if (op.integer(AttrKey::feature_group_count) != 1 || op.integer(AttrKey::batch_group_count) != 1)
    return {};
  return PartsAlong{dims.input_feature, dims.kernel_input_feature, dims.kernel_output_feature,
                    dims.output_feature};
}

std::optional<PartsAlong> parts_of(const Instruction& op) {
  if (op.code() == OpCode::kDotGeneral) return parts_of_dot(op);
  return op.code() == OpCode::kConvolution ? parts_of_convolution(op) : std::nullopt;
}

}  // namespace

bool is_large_complex_product(const Instruction& op) {
  if (op.code() != OpCode::kDotGeneral && op.code() != OpCode::kConvolution) return false;
  const Type& type = op.result_type();
  if (!type.is_tensor() || !is_complex(type.element_type())) return false;
  for (size_t i = 0; i < 2; ++i) {
    const Type& operand = op.operand_type(i);
    if (operand.element_type() != type.element_type() || !operand.shape().is_static()) return false;
  }
  const std::optional<PartsAlong> parts = type.shape().is_static() ? parts_of(op) : std::nullopt;
  if (!parts) return false;
  // Each result has as many products as the right operand has elements for a column.
  const Dims& right = op.operand_type(1).dims();
  const int64_t columns = type.dims()[at(parts->result)];
  const int64_t results = element_count(type.dims());
  const int64_t depth = right[at(parts->rhs)];
  return columns >= kLeastSize && depth >= kLeastSize && results / columns >= kLeastSize &&
         results >= kLeastProducts / depth;
}

// (a + b i) (c + d i) of sums is [a b] times [c d; -d c] of real numbers, whose result has both
// parts side by side: the same products, in sums of twice the length.
Values complex_product(Builder& b, const Instruction& op) {
  const std::optional<PartsAlong> along = parts_of(op);
  if (!along) return internal_error("{} has no parts", op.name());
  const auto part = [&](OpCode code, size_t i) { return b.make(code, {op.operand(i)}); };
  const Value re = part(OpCode::kReal, 1);
  const Value im = part(OpCode::kImag, 1);
  const Value lhs = b.concatenate({part(OpCode::kReal, 0), part(OpCode::kImag, 0)}, along->lhs);
  const Value upper = b.concatenate({re, im}, along->rhs_free);
  const Value lower = b.concatenate({b.make(OpCode::kNegate, {im}), re}, along->rhs_free);
  const Value rhs = b.concatenate({upper, lower}, along->rhs);
  if (!b.ok()) return Error(b.status());
  Dims dims = op.result_type().dims();
  const int64_t columns = dims[at(along->result)];
  dims[at(along->result)] = 2 * columns;
  auto form = std::make_unique<Instruction>(
      op.code(), std::vector<Value>{lhs, rhs},
      std::vector<Type>{Type::tensor(complex_part(op.result_type().element_type()), dims)});
  form->mutable_attributes() = op.attributes();
  Instruction* const made = b.create(std::move(form));
  if (made == nullptr) return Error(b.status());
  const auto half = [&](int64_t first) {
    I64s start(dims.size(), 0);
    I64s limit = dims;
    start[at(along->result)] = first;
    limit[at(along->result)] = first + columns;
    return b.slice(made->result(), start, limit);
  };
  return finished(b, {b.make(OpCode::kComplex, {half(0), half(columns)})});
}

namespace {

// An operand of an einsum, whose dimensions have letters.
struct Lettered {
  Value value;
  std::string letters;

  Dims dims() const { return value.type().dims(); }
  int64_t find(char letter) const {
    const size_t found = letters.find(letter);
    return found == std::string::npos ? -1 : static_cast<int64_t>(found);
  }
};

// Sums over dimension `d`.
void sum_out(Builder& b, Lettered& x, size_t d) {
  if (!b.ok()) return;
  x.value = b.reduce(OpCode::kAdd, x.value, b.scalar(x.value.type().element_type(), 0),
                     {static_cast<int64_t>(d)});
  x.letters.erase(d, 1);
}

// A repeated letter means the diagonal: elements off the diagonal are set to zero, and the
// dimension is summed.
void take_diagonals(Builder& b, Lettered& x) {
  for (size_t d = 1; b.ok() && d < x.letters.size();) {
    const size_t first = x.letters.find(x.letters[d]);
    if (first == d) {
      ++d;
      continue;
    }
    const Expr i(b, b.iota(ElementType::kS64, x.dims(), static_cast<int64_t>(first)));
    const Expr j(b, b.iota(ElementType::kS64, x.dims(), static_cast<int64_t>(d)));
    x.value = select(i == j, Expr(b, x.value), 0.0).value();
    sum_out(b, x, d);
  }
}

// Sums over letters that occur neither in `other` nor in `output`.
void sum_unused(Builder& b, Lettered& x, const std::string& other, const std::string& output) {
  for (size_t d = 0; b.ok() && d < x.letters.size();) {
    const char letter = x.letters[d];
    if (other.find(letter) != std::string::npos || output.find(letter) != std::string::npos) {
      ++d;
    } else {
      sum_out(b, x, d);
    }
  }
}

Value ordered(Builder& b, const Lettered& x, const std::string& output) {
  I64s permutation;
  for (const char letter : output) permutation.push_back(x.find(letter));
  if (permutation == counting(static_cast<int64_t>(permutation.size()))) return x.value;
  return b.transpose(x.value, std::move(permutation));
}

// dot_general over the shared letters: batching if the output has the letter, else contracting.
Lettered contract(Builder& b, const Lettered& lhs, const Lettered& rhs, const std::string& output,
                  ElementType type) {
  DotDims dims;
  std::string batch, free;
  for (const char letter : lhs.letters) {
    const bool is_kept = output.find(letter) != std::string::npos;
    if (rhs.find(letter) < 0) {
      free += letter;
    } else if (is_kept) {
      batch += letter;
      dims.lhs_batching.push_back(lhs.find(letter));
      dims.rhs_batching.push_back(rhs.find(letter));
    } else {
      dims.lhs_contracting.push_back(lhs.find(letter));
      dims.rhs_contracting.push_back(rhs.find(letter));
    }
  }
  for (const char letter : rhs.letters) {
    if (lhs.find(letter) < 0) free += letter;
  }
  return {b.dot_general(lhs.value, rhs.value, std::move(dims), type), batch + free};
}

}  // namespace

// The shape rule has checked the configuration: "ab,bc->ac".
Values einsum(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const std::string config(op.text(AttrKey::einsum_config));
  const size_t comma = config.find(','), arrow = config.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow) {
    return invalid_argument("{}: einsum_config \"{}\" is not of the form \"ab,bc->ac\"", op.name(),
                            config);
  }
  const std::string output = config.substr(arrow + 2);
  Lettered lhs{op.operand(0), config.substr(0, comma)};
  Lettered rhs{op.operand(1), config.substr(comma + 1, arrow - comma - 1)};
  take_diagonals(b, lhs);
  take_diagonals(b, rhs);
  sum_unused(b, lhs, rhs.letters, output);
  sum_unused(b, rhs, lhs.letters, output);
  if (!b.ok()) return Error(b.status());
  const Lettered product = contract(b, lhs, rhs, output, op.result_type().element_type());
  return finished(b, {b.ok() ? ordered(b, product, output) : Value{}});
}

Values unary_einsum(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const std::string config(op.text(AttrKey::einsum_config));
  const size_t arrow = config.find("->");
  if (arrow == std::string::npos) {
    return invalid_argument("{}: einsum_config \"{}\" is not of the form \"ab->a\"", op.name(),
                            config);
  }
  const std::string output = config.substr(arrow + 2);
  Lettered x{op.operand(0), config.substr(0, arrow)};
  take_diagonals(b, x);
  sum_unused(b, x, "", output);
  const ElementType type = op.result_type().element_type();
  return finished(b, {b.ok() ? b.convert(ordered(b, x, output), type) : Value{}});
}

Values broadcast(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const int64_t rank = op.operand_type(0).rank();
  const auto added = static_cast<int64_t>(op.i64s(AttrKey::broadcast_sizes).size());
  I64s dimensions = counting(rank);
  for (int64_t& d : dimensions) d += added;
  return finished(b, {b.make(OpCode::kBroadcastInDim, {op.operand(0)},
                             {{AttrKey::broadcast_dimensions, dimensions}}, op.result_types())});
}

// A gather of slices of size 1 along `dim`; batch dimensions of both operands correspond.
Values torch_index_select(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const Shape& result = op.result_type().shape();
  if (result.element_count() == 0) return finished(b, {b.splat(result, 0)});
  const Type& type = op.operand_type(0);
  const int64_t dim = op.integer(AttrKey::dim);
  const int64_t batch = op.integer(AttrKey::batch_dims);
  const int64_t index_rank = op.operand_type(1).rank();
  GatherDims dims;
  dims.operand_batching_dims = counting(batch);
  dims.start_indices_batching_dims = counting(batch);
  dims.collapsed_slice_dims = {dim};
  dims.start_index_map = {dim};
  dims.index_vector_dim = index_rank;
  I64s sizes = type.dims();
  // Result dimensions: batch, operand up to dim, other dimensions of the index, the rest of the
  // operand.
  for (int64_t d = 0; d < type.rank(); ++d) {
    if (d < batch || d == dim) {
      sizes[at(d)] = 1;
    } else {
      dims.offset_dims.push_back(d < dim ? d : d - 1 + index_rank - batch);
    }
  }
  return finished(b, {b.make(OpCode::kGather, op.operands(),
                             {{AttrKey::dimension_numbers, dims}, {AttrKey::slice_sizes, sizes}},
                             op.result_types())});
}

Values create_token(Builder& b, const Instruction&) {
  return finished(b, {b.make(OpCode::kAfterAll, {})});
}

Values cross_replica_sum(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  auto sum = std::make_unique<Instruction>(OpCode::kAllReduce, op.operands(), op.result_types());
  if (const Attribute* groups = op.attribute(AttrKey::replica_groups)) {
    sum->mutable_attributes().set(AttrKey::replica_groups, *groups);
  }
  sum->add_region(binary_region(OpCode::kAdd, op.operand_type(0).with_dims({})));
  Instruction* made = b.create(std::move(sum));
  return finished(b, {made ? made->result() : Value{}});
}

}  // namespace tenon::hlo::decomposition
