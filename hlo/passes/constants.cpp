#include "hlo/passes/constants.h"

#include <cmath>

namespace tenon::hlo {

const DenseAttr* constant_of(Value value) {
  const bool constant = value.def->code() == OpCode::kConstant && is_plain(value.type());
  return constant ? value.def->attr<DenseAttr>(AttrKey::value) : nullptr;
}

const Literal* splat_of(Value value) {
  const DenseAttr* constant = constant_of(value);
  const bool one = constant != nullptr && constant->values.element_count() == 1;
  return one ? &constant->values : nullptr;
}

bool is_number(Value value, double number) {
  const Literal* splat = splat_of(value);
  if (splat == nullptr || is_complex(splat->element_type())) return false;
  const double found = splat->get_double(0);
  return found == number && std::signbit(found) == std::signbit(number);
}

bool is_all_ones(Value value) {
  const Literal* splat = splat_of(value);
  if (splat == nullptr) return false;
  const ElementType type = splat->element_type();
  if (is_pred(type)) return splat->get_integer(0) == 1;
  if (!is_integer(type)) return false;
  const int width = bit_width(type);
  const auto bits = static_cast<uint64_t>(splat->get_integer(0));
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  return (bits & mask) == mask;
}

Value insert_constant(DenseAttr value, const Type& type, Instruction& before) {
  auto constant = std::make_unique<Instruction>(OpCode::kConstant, std::vector<Value>{},
                                                std::vector<Type>{type});
  constant->mutable_attributes().set(AttrKey::value, std::move(value));
  constant->set_location(before.location());
  return before.parent()->insert(std::move(constant), &before)->result();
}

bool is_plain(const Type& type) {
  return type.is_tensor() && !type.is_quantized() && type.shape().is_static();
}

}  // namespace tenon::hlo
