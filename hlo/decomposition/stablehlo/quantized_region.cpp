// Ops with regions on quantized types (reductions, map, sort, scatter, collectives that combine):
// the op moves stored integers, and its regions compute on quantized values. A region first
// converts its stored parameters to quantized values, and at its end stores its results again.
#include "hlo/decomposition/decomposition_util.h"
#include "hlo/decomposition/needs_decomposition.h"
#include "hlo/ir/inline.h"
#include "hlo/ops/ops.h"

namespace tenon::hlo::decomposition {
namespace {

using Types = std::vector<Type>;

// The rank-0 element types in which an op with regions stores its values. A reduction stores
// everything in the type of its accumulator, even if its inputs or its body's results have another
// scale.
struct Kept {
  Types operands, results;
  std::vector<Types> parameters, returned;  ///< For each region.
};

Types repeated(const Types& some, size_t count) {
  Types all;
  for (size_t i = 0; i < count; ++i) all.push_back(some[i % some.size()]);
  return all;
}

Type element_of(const Type& type) { return type.is_tensor() ? type.with_dims({}) : type; }

Types elements_of_operands(const Instruction& op) {
  Types elements;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    elements.push_back(element_of(op.operand_type(i)));
  }
  return elements;
}

// The first half of the parameters of a combining region.
Types accumulators(const Computation& body) {
  Types types = body.parameter_types();
  types.resize(types.size() / 2);
  return types;
}

Kept kept_by_scatter(const Instruction& op) {
  const Types each = accumulators(op.region(0));
  Kept kept = {elements_of_operands(op), each, {repeated(each, 2 * each.size())}, {each}};
  const size_t n = op.result_count();
  for (size_t k = 0; k < n; ++k) kept.operands[k] = kept.operands[n + 1 + k] = each[k];
  return kept;
}

Kept kept_by_select_and_scatter(const Instruction& op) {
  const Type operand = element_of(op.operand_type(0));
  const Type each = op.region(1).parameter(0).type();
  return {{operand, each, each},
          {each},
          {{operand, operand}, {each, each}},
          {op.region(0).result_types(), {each}}};
}

Kept kept_by_sort(const Instruction& op) {
  const Types each = elements_of_operands(op);
  Types pairs;
  for (const Type& type : each) pairs.insert(pairs.end(), 2, type);
  return {each, each, {pairs}, {op.region(0).result_types()}};
}

Result<Kept> kept_by(const Instruction& op) {
  switch (op.code()) {
    case OpCode::kScatter:
      return kept_by_scatter(op);
    case OpCode::kSelectAndScatter:
      return kept_by_select_and_scatter(op);
    case OpCode::kSort:
      return kept_by_sort(op);
    case OpCode::kMap: {
      const Types results = op.region(0).result_types();
      const Types each = elements_of_operands(op);
      return Kept{each, results, {each}, {results}};
    }
    case OpCode::kReduce:
    case OpCode::kReduceWindow:
    case OpCode::kAllReduce:
    case OpCode::kReduceScatter:
    case OpCode::kCollectiveReduce: {
      const Types each = accumulators(op.region(0));
      return Kept{repeated(each, op.operand_count()),
                  repeated(each, op.result_count()),
                  {repeated(each, 2 * each.size())},
                  {each}};
    }
    default:
      return internal_error("{}: has regions of another kind", op.name());
  }
}

Type stored_as(const Type& element, const Dims& dims) {
  return Type::tensor(element.element_type(), dims);
}

// x in the quantized element type `element`; a value that is not quantized is returned unchanged.
Value requantized(Builder& b, Value x, const Type& element) {
  if (!b.ok() || !x.type().is_quantized() || !element.is_quantized()) return x;
  const Type type = element.with_dims(x.type().dims());
  if (x.type() == type) return x;
  return b.make(OpCode::kUniformQuantize, {x}, {}, {type});
}

// Converts quantized values to integers and back.
class Storing {
 public:
  // If an op itself creates zeros, its integers are relative to the zero point, wrapping around in
  // their type if necessary.
  explicit Storing(const Instruction& op)
      : from_zero_point_(op.code() == OpCode::kCollectiveReduce) {}

  // The integers of x in the element type `element`.
  Value stored(Builder& b, Value x, const Type& element) const {
    const Value value = requantized(b, x, element);
    if (!b.ok() || !value.type().is_quantized()) return value;
    const Value integers = b.bitcast(value, stored_as(element, value.type().dims()));
    return from_zero_point_ ? b.sub(integers, zero_point(b, integers, element)) : integers;
  }

  // The quantized value of `type` whose integers in the element type `element` are x.
  Value restored(Builder& b, Value x, const Type& element, const Type& type) const {
    if (!b.ok() || !type.is_quantized()) return x;
    const Value integers = from_zero_point_ ? b.add(x, zero_point(b, x, element)) : x;
    const Value value = b.bitcast(integers, element.with_dims(type.dims()));
    return requantized(b, value, type.with_dims({}));
  }

 private:
  static Value zero_point(Builder& b, Value like, const Type& element) {
    if (!b.ok()) return {};
    return b.splat_like(like, static_cast<double>(element.quantized()->zero_points[0]));
  }

  bool from_zero_point_;
};

Result<std::unique_ptr<Computation>> stored_region(const Storing& storing, const Computation& body,
                                                   const Types& parameters, const Types& returned) {
  auto region = std::make_unique<Computation>();
  region->set_location(body.location());
  Builder b(*region);
  std::vector<Value> arguments;
  for (size_t i = 0; i < body.parameter_count(); ++i) {
    const Instruction& parameter = body.parameter_instruction(i);
    const Type& type = parameter.result_type();
    const Value x = region->add_parameter(type.is_quantized() ? stored_as(parameters[i], {}) : type,
                                          parameter.location());
    arguments.push_back(storing.restored(b, x, parameters[i], type));
  }
  if (!b.ok()) return Error(b.status());
  Instruction* const end = region->insert(
      std::make_unique<Instruction>(OpCode::kReturn, std::vector<Value>{}, std::vector<Type>{}));
  end->set_location(body.return_instruction()->location());
  Builder at_end(*region, end);
  std::vector<Value> results = clone_body(body, arguments, *end);
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] = storing.stored(at_end, results[i], returned[i]);
  }
  if (!at_end.ok()) return Error(at_end.status());
  end->set_operands(results);
  return region;
}

}  // namespace

Values quantized_with_regions(Builder& b, const Instruction& op) {
  if (op.info().is_decomposable()) return op.info().decompose(b, op);
  TENON_ASSIGN(const Kept kept, kept_by(op));
  const Storing storing(op);
  std::vector<Value> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    operands.push_back(storing.stored(b, op.operand(i), kept.operands[i]));
  }
  if (!b.ok()) return finished(b, {});
  auto copy = std::make_unique<Instruction>(op.code(), operands, Types{});
  copy->set_location(op.location());
  for (const auto& [key, value] : op.attributes()) copy->mutable_attributes().set(key, value);
  copy->mutable_discardable() = op.discardable();
  for (size_t r = 0; r < op.region_count(); ++r) {
    TENON_ASSIGN(std::unique_ptr<Computation> region,
                 stored_region(storing, op.region(r), kept.parameters[r], kept.returned[r]));
    copy->add_region(std::move(region));
  }
  Types types;
  for (size_t i = 0; i < op.result_count(); ++i) {
    const Type& type = op.result_type(i);
    types.push_back(type.is_quantized() ? stored_as(kept.results[i], type.dims()) : type);
  }
  copy->set_result_types(std::move(types));
  Instruction* const moved = b.create(std::move(copy));
  std::vector<Value> results;
  for (uint32_t i = 0; moved != nullptr && i < op.result_count(); ++i) {
    results.push_back(storing.restored(b, moved->result(i), kept.results[i], op.result_type(i)));
  }
  return finished(b, std::move(results));
}

}  // namespace tenon::hlo::decomposition
