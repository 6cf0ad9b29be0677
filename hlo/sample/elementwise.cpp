// Samples of elementwise ops.
#include "hlo/sample/sampler.h"

namespace tenon::hlo::sample {
namespace {

using enum ElementType;

bool admits(const OpInfo& op, ElementType type) {
  // Complex instances are computed from logarithms and quotients: their error bounds depend on the
  // operands, and near a branch cut the result depends on the last bit.
  const bool ill_conditioned =
      op.code == OpCode::kPower || op.code == OpCode::kAtan2 || op.code == OpCode::kRemainder;
  if (is_complex(type) && ill_conditioned) return false;
  return (op.types & type_set_of(type)) != 0;
}

}  // namespace

Instruction* elementwise(Sampler& s, OpCode code) {
  const OpInfo& info = op_info(code);
  const Value x = s.array(0, [&](const Type& type) { return admits(info, type.element_type()); });
  if (!x) return nullptr;
  std::vector<Value> operands = {x};
  while (operands.size() < info.operand_names().size()) {
    const Value next = s.of_type(operands.size(), x.type());
    if (!next) return nullptr;
    operands.push_back(next);
  }
  return s.b().create(code, operands);
}

Instruction* clamp(Sampler& s, OpCode code) {
  const Value x = s.array(1, [](const Type& type) { return !is_complex(type.element_type()); });
  if (!x) return nullptr;
  const Value low = s.of_type(0, x.type());
  const Value high = low ? s.of_type(2, x.type()) : Value();
  return high ? s.b().create(code, {low, x, high}) : nullptr;
}

Instruction* compare(Sampler& s, OpCode) {
  const Value x = s.array(0);
  const Value y = x ? s.of_type(1, x.type()) : Value();
  if (!y) return nullptr;
  const ElementType type = x.type().element_type();
  const int64_t direction = s.random.below(is_complex(type) ? 2 : 6);
  const bool total = is_float(type) && s.random.one_in(4);
  return s.b()
      .compare(static_cast<ComparisonDirection>(direction), x, y,
               total ? ComparisonType::kTotalOrder : ComparisonType::kNoType)
      .def;
}

Instruction* complex(Sampler& s, OpCode code) {
  const Value re = s.array(0, [](const Type& type) {
    return type.element_type() == kF32 || type.element_type() == kF64;
  });
  const Value im = re ? s.of_type(1, re.type()) : Value();
  return im ? s.b().create(code, {re, im}) : nullptr;
}

Instruction* convert(Sampler& s, OpCode code) {
  const Value x = s.array(0);
  if (!x) return nullptr;
  const ElementType to = s.is_trivial() ? x.type().element_type() : s.element_type();
  return s.b().create(code, {x}, {}, {Type::tensor(to, x.type().dims())});
}

Instruction* reduce_precision(Sampler& s, OpCode code) {
  const Value x = s.array(0, [](const Type& type) { return is_float(type.element_type()); });
  if (!x) return nullptr;
  return s.b().create(code, {x},
                      {{AttrKey::exponent_bits, s.random.between(1, 9)},
                       {AttrKey::mantissa_bits, s.random.between(0, 24)}});
}

Instruction* select(Sampler& s, OpCode) {
  const Value x = s.array(1);
  if (!x) return nullptr;
  const Value predicate = s.array(0, [&](const Type& type) {
    return is_pred(type.element_type()) && (type.rank() == 0 || type.dims() == x.type().dims());
  });
  const Value y = predicate ? s.of_type(2, x.type()) : Value();
  return y ? s.b().select(predicate, x, y).def : nullptr;
}

}  // namespace tenon::hlo::sample
