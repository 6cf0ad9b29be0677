// Rules of CHLO ops, except elementwise ops on equal shapes.
#include <algorithm>

#include "hlo/inference/infer_util.h"

namespace tenon::hlo::infer {
namespace {

// Broadcasts two sizes: they are equal, or one of them is 1. If one is unknown and the other known
// and above 1, the unknown size is assumed to equal it or 1.
std::optional<Dim> broadcast_dim(Dim a, Dim b) {
  if (a.size == 1) return b;
  if (b.size == 1) return a;
  if (!same_size(a.size, b.size)) return std::nullopt;
  return merge(a, b);
}

// The elementwise op of "chlo.broadcast_add".
const OpInfo& elementwise_op(const Instruction& op) {
  constexpr std::string_view kPrefix = "broadcast_";
  const std::string suffix(op.info().short_name().substr(kPrefix.size()));
  for (const std::string_view dialect : {"stablehlo.", "chlo."}) {
    if (const auto code = op_from_name(std::string(dialect) + suffix)) return op_info(*code);
  }
  return op.info();
}

// The dimensions of x and y aligned at the last one, or by broadcast_dimensions, which maps each
// dimension of the operand of lower rank to one of the other operand.
Result<std::vector<Dim>> broadcast_dims(const Instruction& op, const std::vector<Dim>& x,
                                        const std::vector<Dim>& y, const I64s* dimensions) {
  const std::vector<Dim>& large = x.size() > y.size() ? x : y;
  const std::vector<Dim>& small = x.size() > y.size() ? y : x;
  std::vector<Dim> result = large;
  if (dimensions != nullptr) {
    TENON_TRY(check_length(op, "", "broadcast_dimensions", length(*dimensions), length(small)));
    TENON_TRY(check_range(op, "", "broadcast_dimensions", *dimensions, length(large)));
    TENON_TRY(check_unique(op, "", "broadcast_dimensions", *dimensions));
  }
  for (size_t i = 0; i < small.size(); ++i) {
    const size_t place =
        dimensions != nullptr ? at((*dimensions)[i]) : large.size() - small.size() + i;
    const std::optional<Dim> dim = broadcast_dim(small[i], result[place]);
    if (!dim) {
      return rule_error(op, "", "sizes {} and {} of dimension {} do not broadcast", small[i].size,
                        result[place].size, place);
    }
    result[place] = *dim;
  }
  return result;
}

}  // namespace

Types chlo_broadcast(const Instruction& op) {
  const bool is_select = op.code() == OpCode::kChloBroadcastSelect;
  const size_t first = is_select ? 1 : 0;
  const Type& lhs = op.operand_type(first);
  const Type& rhs = op.operand_type(first + 1);
  if (is_select && type_class(op.operand_type(0)) != kTypesPred) {
    return rule_error(op, "", "pred is {}, expected a tensor of pred",
                      op.operand_type(0).to_string());
  }
  if (!same_element(lhs, rhs)) {
    return rule_error(op, "", "element types differ: {} and {}", element_to_string(lhs),
                      element_to_string(rhs));
  }
  const OpInfo& elementwise = elementwise_op(op);
  if ((elementwise.types & type_class(lhs)) == 0) {
    return rule_error(op, "", "lhs is {}, which {} does not take", lhs.to_string(),
                      elementwise.name);
  }
  const I64s* dimensions = op.attr<I64s>(AttrKey::broadcast_dimensions);
  TENON_ASSIGN(std::vector<Dim> dims, broadcast_dims(op, dims_of(lhs), dims_of(rhs), dimensions));
  if (is_select) {
    TENON_ASSIGN(dims, broadcast_dims(op, dims_of(op.operand_type(0)), dims, nullptr));
  }
  const Type result = with_dims(lhs, dims);
  if (op.code() == OpCode::kChloBroadcastCompare) {
    TENON_TRY(check_compare_type(op, ""));
    return one(with_element(result, ElementType::kPred));
  }
  if (op.code() == OpCode::kChloBroadcastComplex) {
    const std::optional<ElementType> element = complex_of(lhs.element_type());
    if (!element) return rule_error(op, "", "lhs is {}, expected f32 or f64", lhs.to_string());
    return one(with_element(result, *element));
  }
  return one(settle(op, 0, result));
}

Types chlo_constant_like(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const Attribute& value = *op.attribute(AttrKey::value);
  if (const auto* integer = value.get<IntegerAttr>()) {
    return one(with_element(operand, integer->type));
  }
  if (const auto* number = value.get<FloatAttr>()) return one(with_element(operand, number->type));
  if (value.get<bool>() != nullptr) return one(with_element(operand, ElementType::kPred));
  if (const auto* dense = value.get<DenseAttr>()) {
    return one(with_element(operand, dense->shape.element_type()));
  }
  // A complex number has no attribute of its own and is kept as text.
  TENON_ASSIGN(const Type stated, stated_tensor(op));
  if (!same_shape(stated, operand)) {
    return rule_error(op, "", "result is {}, expected the shape of {}", stated.to_string(),
                      operand.to_string());
  }
  return one(with_dims(stated, dims_of(operand)));
}

Types chlo_top_k(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const int64_t k = op.integer(AttrKey::k);
  if (operand.rank() < 1) {
    return rule_error(op, "", "operand is {}, expected rank 1 or more", operand.to_string());
  }
  std::vector<Dim> dims = dims_of(operand);
  if (k < 0 || (dims.back().size != kDynamic && k > dims.back().size)) {
    return rule_error(op, "", "k is {}, expected 0 to the last size in {}", k, operand.to_string());
  }
  dims.back() = {k, kDynamic};
  const Type values = with_dims(operand, dims);
  return std::vector<Type>{values, with_element(values, ElementType::kS32)};
}

size_t scan_input_count(const Instruction& op) {
  // The body gets inputs without the scanned dimension, and carries unchanged.
  const Computation& body = op.region(0);
  size_t count = 0;
  while (count < op.operand_count() && count < body.parameter_count() &&
         body.parameter(count).type().rank() + 1 == op.operand_type(count).rank()) {
    ++count;
  }
  return count;
}

// Values that a scan passes through unchanged must have a single scale.
Status check_handed_on(const Instruction& op, const std::vector<Type>& from,
                       const std::vector<Type>& to) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (!from[i].is_tensor() || identical_element(from[i], to[i])) continue;
    return rule_error(op, "", "{} is handed on as {}", from[i].to_string(), to[i].to_string());
  }
  return {};
}

Types chlo_scan(const Instruction& op) {
  const int64_t dimension = op.integer(AttrKey::dimension);
  if (op.operand_count() == 0) return rule_error(op, "", "there are no operands");
  TENON_TRY(check_parameter_count(op, 0, "", op.operand_count()));
  const size_t inputs = scan_input_count(op);
  const size_t carries = op.operand_count() - inputs;
  Dim steps;
  if (const auto* stated = op.attr<IntegerAttr>(AttrKey::scan_dim_size)) {
    if (stated->value < 0) {
      return rule_error(op, "", "scan_dim_size is {}, expected at least 0", stated->value);
    }
    steps.size = stated->value;
  }
  std::vector<Type> expected;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Type& operand = op.operand_type(i);
    if (i >= inputs) {
      expected.push_back(operand);
      continue;
    }
    TENON_TRY(check_dimension(op, "", "dimension", dimension, operand.rank()));
    std::vector<Dim> dims = dims_of(operand);
    if (!same_size(steps.size, dims[at(dimension)].size)) {
      return rule_error(op, "", "input {} is {}, expected the size {} in dimension {}", i,
                        operand.to_string(), steps.size, dimension);
    }
    steps = merge(steps, dims[at(dimension)]);
    dims.erase(dims.begin() + dimension);
    expected.push_back(with_dims(operand, dims));
  }
  TENON_TRY(check_parameters(op, 0, "", expected));
  TENON_TRY(check_handed_on(op, expected, op.region(0).parameter_types()));
  TENON_ASSIGN(std::vector<Type> results, region_results(op, 0, ""));
  if (results.size() < carries) {
    return rule_error(op, "", "body returns {} values, expected the {} carries after the outputs",
                      results.size(), carries);
  }
  // Outputs stack the results of the body at each step.
  const size_t outputs = results.size() - carries;
  if (inputs == 0 && outputs == 0 && op.attribute(AttrKey::scan_dim_size) == nullptr) {
    return rule_error(op, "", "has neither inputs, outputs nor scan_dim_size to say its steps");
  }
  for (size_t i = 0; i < outputs; ++i) {
    if (!results[i].is_tensor() || dimension < 0 || dimension > results[i].rank()) {
      return rule_error(op, "",
                        "body returns {} as output {}, which cannot be stacked along dimension "
                        "{}",
                        results[i].to_string(), i, dimension);
    }
    std::vector<Dim> dims = dims_of(results[i]);
    dims.insert(dims.begin() + dimension, steps);
    results[i] = with_dims(results[i], dims);
  }
  for (size_t i = 0; i < carries; ++i) {
    const Type& carry = op.operand_type(inputs + i);
    if (!all_compatible({results[outputs + i]}, {carry})) {
      return rule_error(op, "", "body returns {} as carry {}, expected {}",
                        results[outputs + i].to_string(), i, carry.to_string());
    }
    TENON_TRY(check_handed_on(op, {results[outputs + i]}, {carry}));
  }
  if (op.result_count() == results.size()) {
    TENON_TRY(check_handed_on(op, results, op.result_types()));
  }
  return results;
}

Types chlo_ragged_dot(const Instruction& op) {
  const Type& lhs = op.operand_type(0);
  const Type& rhs = op.operand_type(1);
  const Type& sizes = op.operand_type(2);
  const auto& numbers = *op.attr<RaggedDotDims>(AttrKey::ragged_dot_dimension_numbers);
  TENON_TRY(check_integer(op, "", 2));
  TENON_TRY(check_precisions(op, ""));
  TENON_TRY(check_length(op, "", "lhs_ragged_dimensions", length(numbers.lhs_ragged), 1));
  const int64_t ragged = numbers.lhs_ragged[0];
  TENON_TRY(check_dimension(op, "", "lhs_ragged_dimensions[0]", ragged, lhs.rank()));
  TENON_TRY(check_range(op, "", "rhs_group_dimensions", numbers.rhs_group, rhs.rank()));
  TENON_ASSIGN(std::vector<Dim> dims, dot_dimensions(op, numbers.dot, numbers.rhs_group));
  TENON_TRY(check_unique(
      op, "", "rhs group, batching and contracting dimensions",
      concatenated(numbers.rhs_group,
                   concatenated(numbers.dot.rhs_batching, numbers.dot.rhs_contracting))));
  // Groups divide a batching, a contracting or a free dimension; only in the last case does each
  // group have its own rhs.
  const bool is_batch = contains(numbers.dot.lhs_batching, ragged);
  const bool is_contracting = contains(numbers.dot.lhs_contracting, ragged);
  const int64_t expected_groups = is_batch || is_contracting ? 0 : 1;
  TENON_TRY(
      check_length(op, "", "rhs_group_dimensions", length(numbers.rhs_group), expected_groups));

  // group_sizes is one list, or one for every index of the dimensions outside the ragged one.
  if (sizes.rank() < 1) {
    return rule_error(op, "", "group_sizes is {}, expected rank 1 or more", sizes.to_string());
  }
  const auto before = [&](const I64s& list) {
    return I64s(list.begin(), std::find(list.begin(), list.end(), ragged));
  };
  I64s outer = before(numbers.dot.lhs_batching);
  if (is_contracting) {
    outer = concatenated(numbers.dot.lhs_batching, before(numbers.dot.lhs_contracting));
  } else if (!is_batch) {
    for (int64_t d = 0; d < ragged; ++d) {
      if (!contains(numbers.dot.lhs_batching, d) && !contains(numbers.dot.lhs_contracting, d)) {
        outer.push_back(d);
      }
    }
  }
  if (sizes.rank() != 1) {
    bool fits_outer = sizes.rank() == length(outer) + 1;
    for (size_t i = 0; fits_outer && i < outer.size(); ++i) {
      fits_outer = same_size(sizes.dims()[i], lhs.dims()[at(outer[i])]);
    }
    if (!fits_outer) {
      return rule_error(op, "",
                        "group_sizes is {}, expected rank 1 or the sizes of dimensions {} of {} "
                        "and the groups",
                        sizes.to_string(), list_to_string(outer), lhs.to_string());
    }
  }
  Dim groups = dim_of(sizes, sizes.rank() - 1);
  if (!numbers.rhs_group.empty()) {
    const Dim group = dim_of(rhs, numbers.rhs_group[0]);
    if (!same_size(group.size, groups.size)) {
      return rule_error(op, "", "group dimension of rhs is {}, expected {} as in group_sizes",
                        group.size, groups.size);
    }
  }
  if (is_contracting) dims.insert(dims.begin(), groups);
  if (!multiplies(lhs, rhs)) {
    return rule_error(op, "", "element types differ: {} and {}", element_to_string(lhs),
                      element_to_string(rhs));
  }
  const bool is_stated = op.result_count() == 1 && op.result_type().is_tensor();
  const Type result = with_dims(is_stated ? op.result_type() : lhs, dims);
  TENON_TRY(check_product_element(op, "", result));
  return one(result);
}

}  // namespace tenon::hlo::infer
