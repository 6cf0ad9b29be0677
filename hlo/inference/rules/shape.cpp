// Rules of ops that move elements.
#include <algorithm>
#include <array>

#include "hlo/inference/infer_util.h"

namespace tenon::hlo::infer {
namespace {

// Two known element counts, or nothing if one is unknown.
std::optional<std::pair<int64_t, int64_t>> element_counts(const Type& a, const Type& b) {
  const Result<int64_t> x = checked_element_count(a.dims());
  const Result<int64_t> y = checked_element_count(b.dims());
  if (!x || !y) return std::nullopt;
  return std::pair(*x, *y);
}

// Start indices of dynamic slices: `rank` scalars of one integer type, from operand `first` on.
Status check_start_indices(const Instruction& op, std::string_view count_label,
                           std::string_view type_label, size_t first, int64_t rank) {
  const size_t count = op.operand_count() - first;
  TENON_TRY(check_length(op, count_label, "start_indices", static_cast<int64_t>(count), rank));
  for (size_t i = first; i < op.operand_count(); ++i) {
    TENON_TRY(check_scalar(op, type_label, i));
    TENON_TRY(check_integer(op, type_label, i));
    if (op.operand_type(i).element_type() != op.operand_type(first).element_type()) {
      return rule_error(op, type_label, "start indices differ in type: {} and {}",
                        op.operand_type(first).to_string(), op.operand_type(i).to_string());
    }
  }
  return {};
}

}  // namespace

Types constant(const Instruction& op) {
  const auto* value = op.attr<DenseAttr>(AttrKey::value);
  const Type type(value->shape);
  if (op.result_count() != 1) return one(type);
  // The value of a quantized constant is written in the storage type, or as its bits in signed
  // integers.
  const Type& stated = op.result_type();
  const bool is_same_width = is_signed_integer(type.element_type()) &&
                             bit_width(type.element_type()) == bit_width(stated.element_type());
  const bool is_storage = stated.is_tensor() && stated.is_quantized() && same_shape(stated, type) &&
                          (type.element_type() == stated.element_type() || is_same_width);
  return one(is_storage ? stated : type);
}

Types iota(const Instruction& op) {
  TENON_ASSIGN(const Type stated, stated_tensor(op));
  TENON_TRY(check_dimension(op, "C1", "iota_dimension", op.integer(AttrKey::iota_dimension),
                            stated.rank()));
  return one(stated);
}

Types bitcast_convert(const Instruction& op) {
  TENON_ASSIGN(const Type stated, stated_tensor(op));
  const Type& operand = op.operand_type(0);
  if (is_complex(operand.element_type()) != is_complex(stated.element_type())) {
    return rule_error(op, "C2", "cannot convert between {} and {}: only one is complex",
                      operand.to_string(), stated.to_string());
  }
  const int from = bit_width(operand.element_type());
  const int to = bit_width(stated.element_type());
  if (std::max(from, to) % std::min(from, to) != 0) {
    return rule_error(op, "C1", "{} and {} differ in width by no whole number",
                      element_to_string(operand), element_to_string(stated));
  }
  std::vector<Dim> dims = dims_of(operand);
  if (to < from) {
    dims.push_back({from / to, kDynamic});
  } else if (to > from) {
    if (dims.empty() || !same_size(dims.back().size, to / from)) {
      return rule_error(op, "C1", "operand is {}, expected a last dimension of {} to fill {}",
                        operand.to_string(), to / from, element_to_string(stated));
    }
    dims.pop_back();
  }
  const Type result = with_dims(stated, dims);
  if (!same_shape(result, stated)) {
    return rule_error(op, "C1", "result is {}, expected {} from {}", stated.to_string(),
                      result.to_string(), operand.to_string());
  }
  return one(result);
}

Types broadcast(const Instruction& op) {
  std::vector<Dim> dims;
  for (int64_t size : op.i64s(AttrKey::broadcast_sizes)) {
    if (size < 0) return rule_error(op, "", "broadcast_sizes contains {}, a negative size", size);
    dims.push_back({size, kDynamic});
  }
  const Type& operand = op.operand_type(0);
  for (const Dim& dim : dims_of(operand)) dims.push_back(dim);
  return one(settle(op, 0, with_dims(operand, dims)));
}

Types broadcast_in_dim(const Instruction& op) {
  TENON_ASSIGN(const Type stated, stated_tensor(op));
  const Type& operand = op.operand_type(0);
  const I64s& dimensions = op.i64s(AttrKey::broadcast_dimensions);
  const bool may_differ = is_per_axis(operand) && is_per_axis(stated);
  if (may_differ ? !same_element(operand, stated) : !identical_element(operand, stated)) {
    return rule_error(op, "C1", "result is {}, expected elements {}", stated.to_string(),
                      element_to_string(operand));
  }
  TENON_TRY(check_length(op, "C2", "broadcast_dimensions", length(dimensions), operand.rank()));
  TENON_TRY(check_range(op, "C3", "broadcast_dimensions", dimensions, stated.rank()));
  TENON_TRY(check_unique(op, "C4", "broadcast_dimensions", dimensions));
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const int64_t size = operand.dims()[at(d)];
    const int64_t target = stated.dims()[at(dimensions[at(d)])];
    if (size != 1 && !same_size(size, target)) {
      return rule_error(op, "C5",
                        "operand dimension {} is {}, expected 1 or {}, the size of result "
                        "dimension {}",
                        d, size, target, dimensions[at(d)]);
    }
  }
  TENON_TRY(check_quantized_broadcast(op, operand, stated, dimensions));
  return one(stated);
}

Types concatenate(const Instruction& op) {
  if (op.operand_count() == 0) return rule_error(op, "C3", "there are no inputs");
  const Type& first = op.operand_type(0);
  const int64_t dimension = op.integer(AttrKey::dimension);
  TENON_TRY(check_dimension(op, "C4", "dimension", dimension, first.rank()));
  std::vector<Dim> dims = dims_of(first);
  for (size_t i = 1; i < op.operand_count(); ++i) {
    const Type& input = op.operand_type(i);
    if (!same_element(input, first)) {
      return rule_error(op, "C1", "element types differ: {} and {}", element_to_string(first),
                        element_to_string(input));
    }
    bool fits_first = input.rank() == first.rank();
    for (int64_t d = 0; fits_first && d < first.rank(); ++d) {
      const Dim dim = dim_of(input, d);
      if (d != dimension) {
        fits_first = same_size(dims[at(d)].size, dim.size);
        dims[at(d)] = merge(dims[at(d)], dim);
        continue;
      }
      Dim& sum = dims[at(d)];
      const int64_t size_a = sum.size != kDynamic ? sum.size : sum.bound;
      const int64_t size_b = dim.size != kDynamic ? dim.size : dim.bound;
      const bool is_known = sum.size != kDynamic && dim.size != kDynamic;
      if (size_a == kDynamic || size_b == kDynamic) {
        sum = {};
        continue;
      }
      const auto total = fits(static_cast<__int128>(size_a) + size_b);
      if (!total) return rule_error(op, "C6", "the size of dimension {} overflows", d);
      sum = is_known ? Dim{*total, kDynamic} : Dim{kDynamic, *total};
    }
    if (!fits_first) {
      return rule_error(op, "C2", "inputs {} and {} differ in more than dimension {}",
                        first.to_string(), input.to_string(), dimension);
    }
  }
  return one(settle(op, 0, with_dims(first, dims)));
}

Types pad(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  TENON_TRY(check_scalar(op, "I2", 1));
  if (!same_element(operand, op.operand_type(1))) {
    return rule_error(op, "C1", "element types differ: {} and {}", element_to_string(operand),
                      element_to_string(op.operand_type(1)));
  }
  const I64s& low = op.i64s(AttrKey::edge_padding_low);
  const I64s& high = op.i64s(AttrKey::edge_padding_high);
  const I64s& interior = op.i64s(AttrKey::interior_padding);
  TENON_TRY(check_length(op, "C2", "edge_padding_low", length(low), operand.rank()));
  TENON_TRY(check_length(op, "C2", "edge_padding_high", length(high), operand.rank()));
  TENON_TRY(check_length(op, "C2", "interior_padding", length(interior), operand.rank()));
  std::vector<Dim> dims = dims_of(operand);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (interior[d] < 0) {
      return rule_error(op, "C3", "interior_padding contains {}, expected values from 0 on",
                        interior[d]);
    }
    for (int64_t* size : {&dims[d].size, &dims[d].bound}) {
      if (*size == kDynamic) continue;
      const __int128 spread = static_cast<__int128>(*size) +
                              static_cast<__int128>(std::max<int64_t>(*size - 1, 0)) * interior[d];
      const auto padded = fits(spread + low[d] + high[d]);
      if (!fits(spread) || !padded || *padded < 0) {
        return rule_error(op, "C4",
                          "padding dimension {} of {} by {}, {} and {} between gives no "
                          "valid size",
                          d, operand.to_string(), low[d], high[d], interior[d]);
      }
      *size = *padded;
    }
  }
  return one(settle(op, 0, with_dims(operand, dims)));
}

Types slice(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const I64s& start = op.i64s(AttrKey::start_indices);
  const I64s& limit = op.i64s(AttrKey::limit_indices);
  const I64s& strides = op.i64s(AttrKey::strides);
  TENON_TRY(check_length(op, "C2", "start_indices", length(start), operand.rank()));
  TENON_TRY(check_length(op, "C2", "limit_indices", length(limit), operand.rank()));
  TENON_TRY(check_length(op, "C2", "strides", length(strides), operand.rank()));
  TENON_TRY(check_positive(op, "C4", "strides", strides));
  std::vector<Dim> dims;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const Dim dim = dim_of(operand, d);
    const int64_t most = dim.size != kDynamic ? dim.size : dim.bound;
    const int64_t from = start[at(d)];
    const int64_t to = limit[at(d)];
    if (from < 0 || from > to || (most != kDynamic && to > most)) {
      return rule_error(op, "C3",
                        "dimension {} is sliced from {} to {}, expected bounds in order "
                        "within {}",
                        d, from, to, operand.to_string());
    }
    const int64_t stride = strides[at(d)];
    dims.push_back({(to - from) / stride + ((to - from) % stride != 0), kDynamic});
  }
  return one(settle(op, 0, with_dims(operand, dims)));
}

Types dynamic_slice(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const I64s& sizes = op.i64s(AttrKey::slice_sizes);
  TENON_TRY(check_length(op, "C2", "slice_sizes", length(sizes), operand.rank()));
  TENON_TRY(check_start_indices(op, "C2", "C3", 1, operand.rank()));
  std::vector<Dim> dims;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const int64_t size = sizes[at(d)];
    const int64_t most = operand.dims()[at(d)];
    if (size < 0 || (most != kDynamic && size > most)) {
      return rule_error(op, "C4", "slice size of dimension {} is {}, expected 0 to the size in {}",
                        d, size, operand.to_string());
    }
    dims.push_back({size, kDynamic});
  }
  return one(settle(op, 0, with_dims(operand, dims)));
}

Types dynamic_update_slice(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const Type& update = op.operand_type(1);
  if (!same_element(update, operand)) {
    return rule_error(op, "C2", "element types differ: {} and {}", element_to_string(operand),
                      element_to_string(update));
  }
  if (update.rank() != operand.rank()) {
    return rule_error(op, "C3", "update is {}, expected the rank of {}", update.to_string(),
                      operand.to_string());
  }
  TENON_TRY(check_start_indices(op, "C4", "C5", 2, operand.rank()));
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const int64_t size = update.dims()[at(d)];
    const int64_t most = operand.dims()[at(d)];
    if (size != kDynamic && most != kDynamic && size > most) {
      return rule_error(op, "C6", "update is {}, which exceeds {} in dimension {}",
                        update.to_string(), operand.to_string(), d);
    }
  }
  return one(settle(op, 0, operand));
}

Types transpose(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const I64s& permutation = op.i64s(AttrKey::permutation);
  const I64s range = [&] {
    I64s all(operand.dims().size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    return all;
  }();
  if (!std::is_permutation(permutation.begin(), permutation.end(), range.begin(), range.end())) {
    return rule_error(op, "C2", "permutation is {}, expected each of 0 to {} once",
                      list_to_string(permutation), operand.rank() - 1);
  }
  std::vector<Dim> dims;
  for (int64_t d : permutation) dims.push_back(dim_of(operand, d));
  if (!is_per_axis(operand)) return one(with_dims(operand, dims));

  // The quantized dimension moves with its scales.
  QuantizedType quantized = *operand.quantized();
  const auto moved = std::find(permutation.begin(), permutation.end(), quantized.axis);
  quantized.axis = moved - permutation.begin();
  const Type like = Type::quantized_tensor(Dims(operand.dims().size(), 1), quantized);
  if (op.result_count() == 1 && is_per_axis(op.result_type()) &&
      op.result_type().quantized()->axis != quantized.axis) {
    return rule_error(op, "C4", "result is quantized along dimension {}, expected {}",
                      op.result_type().quantized()->axis, quantized.axis);
  }
  return one(with_dims(like, dims));
}

Types reverse(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const I64s& dimensions = op.i64s(AttrKey::dimensions);
  TENON_TRY(check_unique(op, "C2", "dimensions", dimensions));
  TENON_TRY(check_range(op, "C3", "dimensions", dimensions, operand.rank()));
  return one(settle(op, 0, operand));
}

Status check_reshape(const Instruction& op, const Type& operand, const Type& result) {
  const bool is_moved = is_per_axis(operand) && is_per_axis(result);
  const bool fits_element =
      is_moved ? same_element(operand, result) &&
                     operand.quantized()->scales == result.quantized()->scales &&
                     operand.quantized()->zero_points == result.quantized()->zero_points
               : identical_element(operand, result);
  if (!fits_element) {
    return rule_error(op, "C1", "result is {}, expected elements {}", result.to_string(),
                      element_to_string(operand));
  }
  const auto counts = element_counts(operand, result);
  if (counts && counts->first != counts->second) {
    return rule_error(op, "C2", "operand {} has {} elements, result {} has {}", operand.to_string(),
                      counts->first, result.to_string(), counts->second);
  }
  if (!is_moved) return {};
  const auto parts = [](const Type& type) {
    const auto axis = type.dims().begin() + type.quantized()->axis;
    return std::array<Type, 3>{type.with_dims(Dims(type.dims().begin(), axis)),
                               type.with_dims({*axis}),
                               type.with_dims(Dims(axis + 1, type.dims().end()))};
  };
  const auto before = parts(operand);
  const auto after = parts(result);
  for (size_t i = 0; i < before.size(); ++i) {
    const auto sizes = element_counts(before[i], after[i]);
    if (sizes && sizes->first != sizes->second) {
      return rule_error(op, "C3",
                        "{} and {} differ in the dimensions before, at or after the "
                        "quantized one",
                        operand.to_string(), result.to_string());
    }
  }
  return {};
}

Types reshape(const Instruction& op) {
  TENON_ASSIGN(const Type stated, stated_tensor(op));
  TENON_TRY(check_reshape(op, op.operand_type(0), stated));
  return one(stated);
}

Types torch_index_select(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const Type& index = op.operand_type(1);
  TENON_TRY(check_integer(op, "", 1));
  const int64_t dim = op.integer(AttrKey::dim);
  const int64_t batch_dims = op.integer(AttrKey::batch_dims);
  TENON_TRY(check_dimension(op, "", "dim", dim, operand.rank()));
  if (batch_dims < 0 || batch_dims > dim || batch_dims > index.rank()) {
    return rule_error(op, "", "batch_dims is {}, expected 0 to dim {} and at most the rank of {}",
                      batch_dims, dim, index.to_string());
  }
  // operand[0, dim), the index without its batch dimensions, operand(dim, rank).
  std::vector<Dim> dims;
  for (int64_t d = 0; d < dim; ++d) {
    Dim size = dim_of(operand, d);
    if (d < batch_dims) {
      if (!same_size(size.size, index.dims()[at(d)])) {
        return rule_error(op, "", "batch dimension {} differs in {} and {}", d, operand.to_string(),
                          index.to_string());
      }
      size = merge(size, dim_of(index, d));
    }
    dims.push_back(size);
  }
  for (int64_t d = batch_dims; d < index.rank(); ++d) dims.push_back(dim_of(index, d));
  for (int64_t d = dim + 1; d < operand.rank(); ++d) dims.push_back(dim_of(operand, d));
  return one(settle(op, 0, with_dims(operand, dims)));
}

}  // namespace tenon::hlo::infer
