#include "hlo/builder/builder.h"

#include <algorithm>

#include "hlo/verify/verify.h"

namespace tenon::hlo {

void Builder::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Instruction* Builder::create(OpCode code, const std::vector<Value>& operands, AttrList attributes,
                             std::vector<Type> stated,
                             std::vector<std::unique_ptr<Computation>> regions) {
  if (!ok()) return nullptr;
  auto op = std::make_unique<Instruction>(code, operands, std::move(stated));
  for (const auto& [key, value] : attributes) op->mutable_attributes().set(key, value);
  for (auto& region : regions) op->add_region(std::move(region));
  return create(std::move(op));
}

Instruction* Builder::create(std::unique_ptr<Instruction> op) {
  if (!ok()) return nullptr;
  for (size_t i = 0; i < op->operand_count(); ++i) {
    if (!op->operand(i)) {
      fail(internal_error("{}: operand {} is null", op->name(), i));
      return nullptr;
    }
  }
  if (op->location() == nullptr) op->set_location(location_);
  canonicalize_attributes(*op);
  Result<std::vector<Type>> types = infer_types(*op);
  if (!types) {
    fail(std::move(types.error()));
    return nullptr;
  }
  if (op->result_count() == 0) op->set_result_types(std::move(*types));
  return computation_->insert(std::move(op), before_);
}

Value Builder::make(OpCode code, const std::vector<Value>& operands, AttrList attributes,
                    std::vector<Type> stated) {
  Instruction* op = create(code, operands, attributes, std::move(stated));
  return op ? op->result() : Value{};
}

Value Builder::constant(DenseAttr value) {
  Type type(value.shape);
  return make(OpCode::kConstant, {}, {{AttrKey::value, Attribute(std::move(value))}}, {type});
}

Value Builder::constant(Literal literal) { return constant(DenseAttr::of(std::move(literal))); }

Value Builder::scalar(ElementType type, double value) {
  return constant(Literal::scalar(type, value));
}

Value Builder::splat(const Shape& shape, double value) {
  return constant(DenseAttr::splat(shape, Literal::scalar(shape.element_type(), value)));
}

Value Builder::splat_like(Value x, double value) {
  return ok() ? splat(Shape(x.type().element_type(), x.type().dims()), value) : Value{};
}

Value Builder::iota(ElementType type, Dims dims, int64_t dimension) {
  return make(OpCode::kIota, {}, {{AttrKey::iota_dimension, dimension}},
              {Type::tensor(type, std::move(dims))});
}

Value Builder::compare(ComparisonDirection direction, Value x, Value y, ComparisonType type) {
  return make(
      OpCode::kCompare, {x, y},
      {{AttrKey::comparison_direction,
        EnumAttr{EnumKind::kComparisonDirection, static_cast<uint8_t>(direction)}},
       {AttrKey::compare_type, EnumAttr{EnumKind::kComparisonType, static_cast<uint8_t>(type)}}});
}

Value Builder::convert(Value x, ElementType type) {
  if (!ok() || (!x.type().is_quantized() && x.type().element_type() == type)) return x;
  return make(OpCode::kConvert, {x}, {}, {Type::tensor(type, x.type().dims())});
}

Value Builder::reshape(Value x, Dims dims) {
  if (!ok() || x.type().dims() == dims) return x;
  return make(OpCode::kReshape, {x}, {}, {x.type().with_dims(std::move(dims))});
}

Value Builder::broadcast_in_dim(Value x, Dims dims, I64s broadcast_dimensions) {
  if (!ok()) return {};
  return make(OpCode::kBroadcastInDim, {x},
              {{AttrKey::broadcast_dimensions, Attribute(std::move(broadcast_dimensions))}},
              {x.type().with_dims(std::move(dims))});
}

Value Builder::transpose(Value x, I64s permutation) {
  return make(OpCode::kTranspose, {x}, {{AttrKey::permutation, Attribute(std::move(permutation))}});
}

Value Builder::slice(Value x, I64s start, I64s limit, I64s strides) {
  if (strides.empty()) strides.assign(start.size(), 1);
  return make(OpCode::kSlice, {x},
              {{AttrKey::start_indices, Attribute(std::move(start))},
               {AttrKey::limit_indices, Attribute(std::move(limit))},
               {AttrKey::strides, Attribute(std::move(strides))}});
}

Value Builder::concatenate(const std::vector<Value>& parts, int64_t dimension) {
  return make(OpCode::kConcatenate, parts, {{AttrKey::dimension, dimension}});
}

Value Builder::pad(Value x, Value padding, I64s low, I64s high, I64s interior) {
  if (interior.empty()) interior.assign(low.size(), 0);
  return make(OpCode::kPad, {x, padding},
              {{AttrKey::edge_padding_low, Attribute(std::move(low))},
               {AttrKey::edge_padding_high, Attribute(std::move(high))},
               {AttrKey::interior_padding, Attribute(std::move(interior))}});
}

Value Builder::dot_general(Value lhs, Value rhs, DotDims dims, ElementType result) {
  if (!ok()) return {};
  // The result's dimensions follow from the rule; the caller chooses the element type.
  Dims shape;
  for (int64_t d : dims.lhs_batching) shape.push_back(lhs.type().dims()[static_cast<size_t>(d)]);
  const auto free_dims = [&](Value v, const I64s& batching, const I64s& contracting) {
    for (int64_t d = 0; d < v.type().rank(); ++d) {
      if (std::find(batching.begin(), batching.end(), d) == batching.end() &&
          std::find(contracting.begin(), contracting.end(), d) == contracting.end()) {
        shape.push_back(v.type().dims()[static_cast<size_t>(d)]);
      }
    }
  };
  free_dims(lhs, dims.lhs_batching, dims.lhs_contracting);
  free_dims(rhs, dims.rhs_batching, dims.rhs_contracting);
  return make(OpCode::kDotGeneral, {lhs, rhs},
              {{AttrKey::dot_dimension_numbers, Attribute(std::move(dims))}},
              {Type::tensor(result, std::move(shape))});
}

std::unique_ptr<Computation> binary_region(OpCode combiner, const Type& scalar) {
  auto region = std::make_unique<Computation>();
  const Value x = region->add_parameter(scalar);
  const Value y = region->add_parameter(scalar);
  Instruction* combined = region->insert(
      std::make_unique<Instruction>(combiner, std::vector<Value>{x, y}, std::vector<Type>{scalar}));
  region->insert(std::make_unique<Instruction>(
      OpCode::kReturn, std::vector<Value>{combined->result()}, std::vector<Type>{}));
  return region;
}

Value Builder::reduce(OpCode combiner, Value x, Value init, I64s dimensions) {
  if (!ok()) return {};
  std::vector<std::unique_ptr<Computation>> regions;
  regions.push_back(binary_region(combiner, init.type()));
  Instruction* op =
      create(OpCode::kReduce, {x, init}, {{AttrKey::dimensions, Attribute(std::move(dimensions))}},
             {}, std::move(regions));
  return op ? op->result() : Value{};
}

Value Builder::dynamic_slice(Value x, std::vector<Value> starts, I64s sizes) {
  starts.insert(starts.begin(), x);
  return make(OpCode::kDynamicSlice, starts, {{AttrKey::slice_sizes, Attribute(std::move(sizes))}});
}

Value Builder::dynamic_update_slice(Value x, Value update, std::vector<Value> starts) {
  starts.insert(starts.begin(), {x, update});
  return make(OpCode::kDynamicUpdateSlice, starts);
}

std::vector<Value> Builder::while_loop(
    const std::vector<Value>& state,
    const std::function<Value(Builder&, const std::vector<Value>&)>& cond,
    const std::function<std::vector<Value>(Builder&, const std::vector<Value>&)>& body) {
  const size_t count = state.size();
  if (!ok()) return std::vector<Value>(count);
  std::vector<std::unique_ptr<Computation>> regions;
  for (const bool is_cond : {true, false}) {
    auto region = std::make_unique<Computation>();
    std::vector<Value> parameters;
    for (const Value& value : state) parameters.push_back(region->add_parameter(value.type()));
    Builder inner(*region);
    inner.set_location(location_);
    fail(inner.finish(is_cond ? std::vector<Value>{cond(inner, parameters)}
                              : body(inner, parameters)));
    regions.push_back(std::move(region));
  }
  Instruction* op = create(OpCode::kWhile, state, {}, {}, std::move(regions));
  std::vector<Value> results(count);
  for (uint32_t i = 0; op != nullptr && i < count; ++i) results[i] = op->result(i);
  return results;
}

Status Builder::finish(const std::vector<Value>& results) {
  if (ok()) create(OpCode::kReturn, results);
  return status_;
}

}  // namespace tenon::hlo
