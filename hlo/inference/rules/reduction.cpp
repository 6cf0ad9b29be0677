// Rules of reductions, windows and sorting.
#include "hlo/inference/infer_util.h"

namespace tenon::hlo::infer {
namespace {

struct VariadicLabels {
  std::string_view count, shapes, elements;
};

// The halves of the operands of a variadic reduction: inputs of one shape, then as many rank-0
// initial values.
struct Halves {
  std::vector<Type> inputs, inits;
  Type shape;  ///< The shape of the inputs, with all sizes that any of them knows.
};
Result<Halves> split(const Instruction& op, const VariadicLabels& labels) {
  const size_t count = op.operand_count() / 2;
  if (count == 0 || op.operand_count() % 2 != 0) {
    return rule_error(op, labels.count,
                      "there are {} operands, expected as many initial values as "
                      "inputs and at least one",
                      op.operand_count());
  }
  Halves halves;
  halves.shape = op.operand_type(0);
  for (size_t i = 0; i < count; ++i) {
    const Type& input = op.operand_type(i);
    const Type& init = op.operand_type(count + i);
    if (!same_shape(input, halves.shape)) {
      return rule_error(op, labels.shapes, "input shapes differ: {} and {}",
                        halves.shape.to_string(), input.to_string());
    }
    TENON_TRY(check_scalar(op, "I2", count + i));
    // The body checks the other width, since it may widen both.
    if (!same_element(input, init) && !promotable(input, init) && !promotable(init, input)) {
      return rule_error(op, labels.elements, "input {} is {}, its initial value is {}", i,
                        element_to_string(input), element_to_string(init));
    }
    halves.shape = most_specific(halves.shape, input);
    halves.inputs.push_back(input);
    halves.inits.push_back(init);
  }
  return halves;
}

// The results of a reduction whose accumulators have the types of `elements`.
std::vector<Type> results_like(const Instruction& op, const std::vector<Type>& elements,
                               const std::vector<Dim>& dims) {
  std::vector<Type> results;
  for (size_t i = 0; i < elements.size(); ++i) {
    results.push_back(settle(op, i, with_dims(elements[i], dims)));
  }
  return results;
}

Status check_padding(const Instruction& op, std::string_view label, const I64Matrix& padding,
                     int64_t rank) {
  if (padding.rows == rank && (padding.columns == 2 || rank == 0)) return {};
  return rule_error(op, label, "padding has shape [{}, {}], expected [{}, 2]", padding.rows,
                    padding.columns, rank);
}

// Checks that the elements of a window can be counted.
Status check_window(const Instruction& op, const I64s& sizes) {
  if (checked_element_count(sizes)) return {};
  return rule_error(op, "", "window_dimensions is {}, a window of more places than can be counted",
                    list_to_string(sizes));
}

// The sizes of the windowed shape.
Result<std::vector<Dim>> windowed(const Instruction& op, std::string_view label, const Type& shape,
                                  const std::vector<Window>& windows) {
  std::vector<Dim> dims;
  for (size_t d = 0; d < windows.size(); ++d) {
    const auto count = window_count(shape.dims()[d], windows[d]);
    if (!count) return rule_error(op, label, "the padded size of dimension {} overflows", d);
    dims.push_back({*count, kDynamic});
  }
  return dims;
}

}  // namespace

Types reduce(const Instruction& op) {
  TENON_ASSIGN(const Halves halves, split(op, {"C3", "C1", "C2"}));
  const I64s& dimensions = op.i64s(AttrKey::dimensions);
  TENON_TRY(check_range(op, "C4", "dimensions", dimensions, halves.shape.rank()));
  TENON_TRY(check_unique(op, "C5", "dimensions", dimensions));
  TENON_ASSIGN(const std::vector<Type> elements,
               check_reducer(op, 0, "C6", halves.inputs, halves.inits));
  std::vector<Dim> dims;
  for (int64_t d = 0; d < halves.shape.rank(); ++d) {
    if (!contains(dimensions, d)) dims.push_back(dim_of(halves.shape, d));
  }
  return results_like(op, elements, dims);
}

Types reduce_window(const Instruction& op) {
  TENON_ASSIGN(const Halves halves, split(op, {"C1", "C2", "C3"}));
  const int64_t rank = halves.shape.rank();
  const auto ones = [&](AttrKey key) { return op.i64s_or(key, at(rank), 1); };
  const I64s& sizes = op.i64s(AttrKey::window_dimensions);
  const I64s strides = ones(AttrKey::window_strides);
  const I64s base_dilations = ones(AttrKey::base_dilations);
  const I64s dilations = ones(AttrKey::window_dilations);
  TENON_TRY(check_length(op, "C4", "window_dimensions", length(sizes), rank));
  TENON_TRY(check_positive(op, "C5", "window_dimensions", sizes));
  TENON_TRY(check_window(op, sizes));
  TENON_TRY(check_length(op, "C6", "window_strides", length(strides), rank));
  TENON_TRY(check_positive(op, "C7", "window_strides", strides));
  TENON_TRY(check_length(op, "C8", "base_dilations", length(base_dilations), rank));
  TENON_TRY(check_positive(op, "C9", "base_dilations", base_dilations));
  TENON_TRY(check_length(op, "C10", "window_dilations", length(dilations), rank));
  TENON_TRY(check_positive(op, "C11", "window_dilations", dilations));
  const I64Matrix padding = op.padding_or_zero(at(rank));
  TENON_TRY(check_padding(op, "C12", padding, rank));
  TENON_ASSIGN(const std::vector<Type> elements,
               check_reducer(op, 0, "C13", halves.inputs, halves.inits));
  std::vector<Window> windows;
  for (int64_t d = 0; d < rank; ++d) {
    windows.push_back({sizes[at(d)], strides[at(d)], padding.at(d, 0), padding.at(d, 1),
                       base_dilations[at(d)], dilations[at(d)]});
  }
  TENON_ASSIGN(const std::vector<Dim> dims, windowed(op, "C15", halves.shape, windows));
  return results_like(op, elements, dims);
}

Types select_and_scatter(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const Type& source = op.operand_type(1);
  const Type& init = op.operand_type(2);
  const int64_t rank = operand.rank();
  if (!same_element(operand, source) && !promotable(operand, source)) {
    return rule_error(op, "C1", "element types differ: {} and {}", element_to_string(operand),
                      element_to_string(source));
  }
  TENON_TRY(check_scalar(op, "I3", 2));
  if (!same_element(operand, init) && !promotable(operand, init)) {
    return rule_error(op, "C3", "init_value is {}, expected elements {}", init.to_string(),
                      element_to_string(operand));
  }
  const I64s sizes = op.i64s_or(AttrKey::window_dimensions, at(rank), 1);
  const I64s strides = op.i64s_or(AttrKey::window_strides, at(rank), 1);
  TENON_TRY(check_length(op, "C4", "window_dimensions", length(sizes), rank));
  TENON_TRY(check_positive(op, "C5", "window_dimensions", sizes));
  TENON_TRY(check_window(op, sizes));
  TENON_TRY(check_length(op, "C6", "window_strides", length(strides), rank));
  TENON_TRY(check_positive(op, "C7", "window_strides", strides));
  const I64Matrix padding = op.padding_or_zero(at(rank));
  TENON_TRY(check_padding(op, "C8", padding, rank));
  std::vector<Window> windows;
  for (int64_t d = 0; d < rank; ++d) {
    windows.push_back({sizes[at(d)], strides[at(d)], padding.at(d, 0), padding.at(d, 1), 1, 1});
  }
  TENON_ASSIGN(const std::vector<Dim> dims, windowed(op, "C2", operand, windows));
  const Type expected = with_dims(source, dims);
  if (!same_shape(source, expected)) {
    return rule_error(op, "C2", "source is {}, expected {}, one element a window",
                      source.to_string(), expected.to_string());
  }
  const Type scalar = operand.with_dims({});
  TENON_TRY(check_parameters(op, 0, "C9", {scalar, scalar}));
  TENON_ASSIGN(const std::vector<Type> selected, region_results(op, 0, "C9"));
  if (selected.size() != 1 || !(selected[0] == Type::tensor(ElementType::kPred, {}))) {
    return rule_error(op, "C9", "select returns ({}), expected pred[]", types_to_string(selected));
  }
  TENON_ASSIGN(const std::vector<Type> elements, check_reducer(op, 1, "C10", {source}, {init}));
  if (!promotable(operand, elements[0])) {
    return rule_error(op, "C10", "scatter returns {}, which {} does not promote to",
                      elements[0].to_string(), element_to_string(operand));
  }
  return results_like(op, elements, dims_of(operand));
}

Types sort(const Instruction& op) {
  if (op.operand_count() == 0) return rule_error(op, "C1", "there are no inputs");
  Type shape = op.operand_type(0);
  std::vector<Type> expected;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Type& input = op.operand_type(i);
    if (!same_shape(input, shape)) {
      return rule_error(op, "C3", "input shapes differ: {} and {}", shape.to_string(),
                        input.to_string());
    }
    shape = most_specific(shape, input);
    expected.insert(expected.end(), 2, input.with_dims({}));
  }
  const int64_t dimension = op.integer(AttrKey::dimension, -1);
  if (dimension < -shape.rank() || dimension >= shape.rank()) {
    return rule_error(op, "C4", "dimension is {}, expected a value in [-{}, {})", dimension,
                      shape.rank(), shape.rank());
  }
  TENON_TRY(check_parameters(op, 0, "C5", expected));
  TENON_ASSIGN(const std::vector<Type> order, region_results(op, 0, "C5"));
  if (order.size() != 1 || !(order[0] == Type::tensor(ElementType::kPred, {}))) {
    return rule_error(op, "C5", "comparator returns ({}), expected pred[]", types_to_string(order));
  }
  std::vector<Type> results;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    results.push_back(settle(op, i, with_dims(op.operand_type(i), dims_of(shape))));
  }
  return results;
}

namespace {

struct BatchNormLabels {
  std::string_view index = "C1", elements = "C2", shape = "C3";
  /// Labels of the operands of rank 1, from operand 1 on.
  std::string_view size[4] = {};
};

// Operands 1 to 1 + features have one number per feature; the others have the operand's shape.
Result<Type> check_batch_norm(const Instruction& op, size_t features,
                              const BatchNormLabels& labels) {
  const Type& operand = op.operand_type(0);
  const int64_t index = op.integer(AttrKey::feature_index);
  TENON_TRY(check_dimension(op, labels.index, "feature_index", index, operand.rank()));
  Type shape = operand;
  Dim count = dim_of(operand, index);
  for (size_t i = 1; i < op.operand_count(); ++i) {
    const Type& other = op.operand_type(i);
    if (!same_element(other, operand)) {
      return rule_error(op, labels.elements, "operand {} is {}, expected elements {}", i,
                        other.to_string(), element_to_string(operand));
    }
    if (i > features) {
      if (!same_shape(other, operand)) {
        return rule_error(op, labels.shape, "operand {} is {}, expected the shape of {}", i,
                          other.to_string(), operand.to_string());
      }
      shape = most_specific(shape, other);
      continue;
    }
    if (other.rank() != 1 || !same_size(other.dims()[0], count.size)) {
      return rule_error(op, labels.size[i - 1],
                        "operand {} is {}, expected one element for each of "
                        "dimension {} of {}",
                        i, other.to_string(), index, operand.to_string());
    }
    count = merge(count, dim_of(other, 0));
  }
  std::vector<Dim> dims = dims_of(shape);
  dims[at(index)] = merge(dims[at(index)], count);
  return with_dims(shape, dims);
}

// The first result, and two more with one number per feature.
Types batch_norm_results(const Instruction& op, const Type& shape) {
  const Dim count = dim_of(shape, op.integer(AttrKey::feature_index));
  std::vector<Type> results = {settle(op, 0, shape)};
  for (size_t i = 1; i < 3; ++i) results.push_back(settle(op, i, with_dims(shape, {count})));
  return results;
}

}  // namespace

Types batch_norm_grad(const Instruction& op) {
  const BatchNormLabels labels{.size = {"C5", "C4", "C4", ""}};
  TENON_ASSIGN(const Type shape, check_batch_norm(op, 3, labels));
  return batch_norm_results(op, shape);
}

Types batch_norm_inference(const Instruction& op) {
  const BatchNormLabels labels{.size = {"C3", "C4", "C5", "C6"}};
  TENON_ASSIGN(const Type shape, check_batch_norm(op, 4, labels));
  return one(settle(op, 0, shape));
}

Types batch_norm_training(const Instruction& op) {
  const BatchNormLabels labels{.size = {"C3", "C4", "", ""}};
  TENON_ASSIGN(const Type shape, check_batch_norm(op, 2, labels));
  return batch_norm_results(op, shape);
}

}  // namespace tenon::hlo::infer
